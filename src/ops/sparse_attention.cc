#include "ops/sparse_attention.h"

#include <algorithm>
#include <cmath>

#include "ops/pages.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"q", Elements::floating, 3},   {"k", Elements::floating, 3},
                                 {"v", Elements::floating, 3},   {"ids", Elements::i32, 2},
                                 {"out", Elements::floating, 3}, {"lse", Elements::f32, 2},
                                 {"dout", Elements::floating, 3}};
constexpr InputRule kPagedInputs[] = {{"q", Elements::floating, 3},       {"k_cache", Elements::floating, 4},
                                      {"v_cache", Elements::floating, 4}, {"page_table", Elements::i32, 2},
                                      {"stream", Elements::i32, 1},       {"ids", Elements::i32, 2}};

Status check(const OpSite& site, const Type& ids) {
  const Type &q = site.inputs[0], &k = site.inputs[1], &v = site.inputs[2];
  RETURN_IF_ERROR(
      expect(site, q.dtype == k.dtype && q.dtype == v.dtype, "queries, keys and values differ in dtype"));
  RETURN_IF_ERROR(expect_extent(site, "head_dim of the keys", k.shape[-1], q.shape[2]));
  RETURN_IF_ERROR(expect_extent(site, "kv_heads of the values", v.shape[-2], k.shape[-2]));
  RETURN_IF_ERROR(
      expect(site, k.shape[-2] > 0 && q.shape[1] % k.shape[-2] == 0, "heads is not a multiple of kv_heads"));
  return expect_extent(site, "the number of rows of ids", ids.shape[0], q.shape[0]);
}

Type output_type(const OpSite& site) {
  const Shape& q = site.inputs[0].shape;
  return {site.inputs[0].dtype, Shape{q[0], q[1], site.inputs[2].shape[-1]}};
}

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, std::span(kInputs).first(4)));
  RETURN_IF_ERROR(check(site, site.inputs[3]));
  const Shape& q = site.inputs[0].shape;
  return std::vector<Type>{output_type(site), Type{DType::f32, Shape{q[0], q[1]}}};
}

InferredTypes infer_grad(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  RETURN_IF_ERROR(check(site, site.inputs[3]));
  RETURN_IF_ERROR(expect(site, site.inputs[4] == output_type(site) && site.inputs[6] == output_type(site),
                         "out or dout is not of the output's type"));
  return std::vector<Type>{site.inputs[0], site.inputs[1], site.inputs[2]};
}

InferredTypes infer_paged(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kPagedInputs));
  RETURN_IF_ERROR(check(site, site.inputs[5]));
  RETURN_IF_ERROR(
      expect_extent(site, "the length of stream", site.inputs[4].shape[0], site.inputs[0].shape[0]));
  return std::vector<Type>{output_type(site)};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  std::vector<ValueId> gradients(4);
  if (!site.needed[0] && !site.needed[1] && !site.needed[2]) return gradients;
  const auto& in = site.op.inputs;
  const auto found = sparse_attention_grad(
      site.builder,
      {in[0], in[1], in[2], in[3], site.op.outputs[0], site.op.outputs[1], site.output_gradients[0]},
      site.op.attrs.real("scale"));
  for (size_t i = 0; i < 3; ++i) {
    if (site.needed[i]) gradients[i] = found[i];
  }
  return gradients;
}

template <int64_t kFactor>
Cost cost(const OpSite& site) {
  Cost cost = streaming_cost(site, 0);
  const Shape &q = site.inputs[0].shape, &v = site.inputs[2].shape;
  const int64_t n = site.inputs[site.inputs.size() == 6 ? 5 : 3].shape[1];
  cost.flops = kFactor * q[0] * q[1] * n * (q[2] + v[-1]);
  return cost;
}

struct Sizes {
  int64_t tokens, heads, kv_heads, dim, v_dim, n;
  Sizes(const ReferenceCall& call, size_t ids)
      : tokens(call.inputs[0].type.shape[0]),
        heads(call.inputs[0].type.shape[1]),
        kv_heads(call.inputs[1].type.shape[-2]),
        dim(call.inputs[0].type.shape[2]),
        v_dim(call.inputs[2].type.shape[-1]),
        n(call.inputs[ids].type.shape[1]) {}
};

double dot(const double* a, const double* b, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += a[i] * b[i];
  return total;
}

// One head of one token over rows of k and v; returns the log of the softmax's sum.
double attend(const ReferenceCall& call, const Sizes& s, int64_t t, int64_t h,
              const std::vector<int64_t>& rows) {
  double* out = call.outputs[0].data + (t * s.heads + h) * s.v_dim;
  std::fill_n(out, s.v_dim, 0.0);
  if (rows.empty()) return 0;
  const double* q = call.inputs[0].data + (t * s.heads + h) * s.dim;
  const int64_t kv = h / (s.heads / s.kv_heads);
  std::vector<double> scores;
  for (int64_t row : rows)
    scores.push_back(call.attrs.real("scale") *
                     dot(q, call.inputs[1].data + (row * s.kv_heads + kv) * s.dim, s.dim));
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double score : scores) total += std::exp(score - largest);
  for (size_t i = 0; i < rows.size(); ++i) {
    const double p = std::exp(scores[i] - largest) / total;
    const double* v = call.inputs[2].data + (rows[i] * s.kv_heads + kv) * s.v_dim;
    for (int64_t j = 0; j < s.v_dim; ++j) out[j] += p * v[j];
  }
  return largest + std::log(total);
}

// The ids of token t that name something.
std::vector<int64_t> ids_of(const ReferenceTensor& ids, int64_t t) {
  std::vector<int64_t> out;
  const int64_t n = ids.type.shape[1];
  for (int64_t i = 0; i < n; ++i) {
    if (ids.data[t * n + i] >= 0) out.push_back(static_cast<int64_t>(ids.data[t * n + i]));
  }
  return out;
}

void reference(const ReferenceCall& call) {
  const Sizes s(call, 3);
  for (int64_t t = 0; t < s.tokens; ++t) {
    for (int64_t h = 0; h < s.heads; ++h)
      call.outputs[1].data[t * s.heads + h] = attend(call, s, t, h, ids_of(call.inputs[3], t));
  }
}

void reference_paged(const ReferenceCall& call) {
  const Sizes s(call, 5);
  for (int64_t t = 0; t < s.tokens; ++t) {
    const auto stream = static_cast<int64_t>(call.inputs[4].data[t]);
    std::vector<int64_t> rows;
    for (int64_t position : ids_of(call.inputs[5], t)) {
      if (stream >= 0) rows.push_back(page_slot(call.inputs[1], call.inputs[3], stream, position));
    }
    for (int64_t h = 0; h < s.heads; ++h) attend(call, s, t, h, rows);
  }
}

void add_gradients(const ReferenceCall& call, const Sizes& s, int64_t t, int64_t h,
                   const std::vector<int64_t>& rows) {
  const int64_t head = t * s.heads + h, kv = h / (s.heads / s.kv_heads);
  const double *q = call.inputs[0].data + head * s.dim, *dout = call.inputs[6].data + head * s.v_dim;
  const double scale = call.attrs.real("scale"), lse = call.inputs[5].data[head];
  const double delta = dot(dout, call.inputs[4].data + head * s.v_dim, s.v_dim);
  for (int64_t row : rows) {
    const int64_t key = (row * s.kv_heads + kv) * s.dim, value = (row * s.kv_heads + kv) * s.v_dim;
    const double* k = call.inputs[1].data + key;
    const double p = std::exp(scale * dot(q, k, s.dim) - lse);
    const double ds = scale * p * (dot(dout, call.inputs[2].data + value, s.v_dim) - delta);
    for (int64_t i = 0; i < s.dim; ++i) {
      call.outputs[0].data[head * s.dim + i] += ds * k[i];
      call.outputs[1].data[key + i] += ds * q[i];
    }
    for (int64_t i = 0; i < s.v_dim; ++i) call.outputs[2].data[value + i] += p * dout[i];
  }
}

void reference_grad(const ReferenceCall& call) {
  const Sizes s(call, 3);
  for (const ReferenceTensor& output : call.outputs) std::fill_n(output.data, output.type.elements(), 0.0);
  for (int64_t t = 0; t < s.tokens; ++t) {
    for (int64_t h = 0; h < s.heads; ++h) add_gradients(call, s, t, h, ids_of(call.inputs[3], t));
  }
}

}  // namespace

const OpDef& sparse_attention_op() {
  static constexpr OpDef def{.name = "sparse_attention",
                             .infer = infer,
                             .gradient = gradient,
                             .cost = cost<2>,
                             .reference = reference};
  return def;
}

const OpDef& sparse_attention_grad_op() {
  static constexpr OpDef def{
      .name = "sparse_attention_grad", .infer = infer_grad, .cost = cost<5>, .reference = reference_grad};
  return def;
}

const OpDef& sparse_paged_attention_op() {
  static constexpr OpDef def{
      .name = "sparse_paged_attention", .infer = infer_paged, .cost = cost<2>, .reference = reference_paged};
  return def;
}

ValueId sparse_attention(Builder& builder, ValueId q, ValueId k, ValueId v, ValueId ids, double scale) {
  return builder.emit(sparse_attention_op(), {q, k, v, ids}, {{"scale", scale}})[0];
}

std::vector<ValueId> sparse_attention_grad(Builder& builder, std::vector<ValueId> inputs, double scale) {
  return builder.emit(sparse_attention_grad_op(), std::move(inputs), {{"scale", scale}});
}

ValueId sparse_paged_attention(Builder& builder, const SparsePagedInputs& in, double scale) {
  return builder.emit_one(sparse_paged_attention_op(),
                          {in.q, in.k_cache, in.v_cache, in.page_table, in.stream, in.ids},
                          {{"scale", scale}});
}

}  // namespace tenon
