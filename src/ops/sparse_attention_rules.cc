#include "ops/sparse_attention_rules.h"

#include <algorithm>
#include <cmath>

#include "ops/pages.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"q", Elements::floating, 3},   {"k", Elements::floating, 3},
                                 {"v", Elements::floating, 3},   {"ids", Elements::i32, -1},
                                 {"out", Elements::floating, 3}, {"lse", Elements::f32, 2},
                                 {"dout", Elements::floating, 3}};
constexpr InputRule kPagedInputs[] = {{"q", Elements::floating, 3},       {"k_cache", Elements::floating, 4},
                                      {"v_cache", Elements::floating, 4}, {"page_table", Elements::i32, 2},
                                      {"stream", Elements::i32, 1},       {"ids", Elements::i32, -1}};
constexpr InputRule kSinks = {"sinks", Elements::f32, 1};

Status check(const OpSite& site, SparseLayout layout) {
  std::vector<InputRule> rules;
  if (layout.paged) {
    rules.assign(std::begin(kPagedInputs), std::end(kPagedInputs));
  } else {
    rules.assign(kInputs, kInputs + layout.plain());
  }
  rules[layout.ids()].rank = layout.biased ? 3 : 2;
  if (layout.sinks(site.attrs)) rules.push_back(kSinks);
  RETURN_IF_ERROR(check_inputs(site, rules));
  const Type &q = site.inputs[0], &k = site.inputs[1], &v = site.inputs[2];
  const Shape& ids = site.inputs[layout.ids()].shape;
  RETURN_IF_ERROR(
      expect(site, q.dtype == k.dtype && q.dtype == v.dtype, "queries, keys and values differ in dtype"));
  RETURN_IF_ERROR(expect_extent(site, "head_dim of the keys", k.shape[-1], q.shape[2]));
  RETURN_IF_ERROR(expect_extent(site, "kv_heads of the values", v.shape[-2], k.shape[-2]));
  RETURN_IF_ERROR(
      expect(site, k.shape[-2] > 0 && q.shape[1] % k.shape[-2] == 0, "heads is not a multiple of kv_heads"));
  RETURN_IF_ERROR(expect(site, !layout.biased || (ids[1] > 0 && q.shape[1] % ids[1] == 0),
                         "heads is not a multiple of the groups of ids"));
  if (layout.sinks(site.attrs))
    RETURN_IF_ERROR(expect_extent(site, "the number of sinks", site.inputs.back().shape[0], q.shape[1]));
  if (layout.paged)
    RETURN_IF_ERROR(expect_extent(site, "the length of stream", site.inputs[4].shape[0], q.shape[0]));
  return expect_extent(site, "the number of rows of ids", ids[0], q.shape[0]);
}

double dot(const double* a, const double* b, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += a[i] * b[i];
  return total;
}

// One call, read head by head.
struct Reader {
  const ReferenceCall& call;
  SparseLayout layout;
  int64_t heads, kv_heads, dim, v_dim, groups, n;

  Reader(const ReferenceCall& c, SparseLayout l) : call(c), layout(l) {
    const Shape &q = c.inputs[0].type.shape, &k = c.inputs[1].type.shape;
    const Shape& ids = c.inputs[l.ids()].type.shape;
    heads = q[1];
    kv_heads = k[-2];
    dim = q[2];
    v_dim = c.inputs[2].type.shape[-1];
    groups = l.biased ? ids[1] : 1;
    n = ids[-1];
  }

  double score(int64_t t, int64_t h, int64_t row) const {
    return call.attrs.real("scale") *
           dot(call.inputs[0].data + (t * heads + h) * dim, call.inputs[1].data + key_at(h, row) * dim, dim);
  }
  // A key or value, in heads.
  int64_t key_at(int64_t h, int64_t row) const { return row * kv_heads + h / (heads / kv_heads); }
  const double* value(int64_t h, int64_t row) const { return call.inputs[2].data + key_at(h, row) * v_dim; }
  const double* sink(int64_t h) const {
    return layout.sinks(call.attrs) ? call.inputs[layout.plain()].data + h : nullptr;
  }

  // Rows of k and v that head h of token t reads.
  std::vector<int64_t> rows(int64_t t, int64_t h) const {
    std::vector<int64_t> out;
    const int64_t group = h / (heads / groups);
    const double* ids = call.inputs[layout.ids()].data + (t * groups + group) * n;
    const int64_t stream = layout.paged ? static_cast<int64_t>(call.inputs[4].data[t]) : 0;
    for (int64_t i = 0; i < n && stream >= 0; ++i) {
      const auto id = static_cast<int64_t>(ids[i]);
      if (id >= 0) out.push_back(layout.paged ? page_slot(call.inputs[1], call.inputs[3], stream, id) : id);
    }
    return out;
  }
};

// One head of one token; returns the log of the softmax's sum, sink included.
double attend(const Reader& r, int64_t t, int64_t h) {
  double* out = r.call.outputs[0].data + (t * r.heads + h) * r.v_dim;
  std::fill_n(out, r.v_dim, 0.0);
  const std::vector<int64_t> rows = r.rows(t, h);
  if (rows.empty()) return 0;
  const double* sink = r.sink(h);
  std::vector<double> scores;
  for (int64_t row : rows) scores.push_back(r.score(t, h, row));
  double largest = *std::max_element(scores.begin(), scores.end());
  if (sink != nullptr) largest = std::max(largest, *sink);
  double total = sink != nullptr ? std::exp(*sink - largest) : 0;
  for (double score : scores) total += std::exp(score - largest);
  for (size_t i = 0; i < rows.size(); ++i) {
    const double p = std::exp(scores[i] - largest) / total;
    const double* v = r.value(h, rows[i]);
    for (int64_t j = 0; j < r.v_dim; ++j) out[j] += p * v[j];
  }
  return largest + std::log(total);
}

void add_gradients(const Reader& r, int64_t t, int64_t h) {
  const ReferenceCall& call = r.call;
  const int64_t head = t * r.heads + h;
  const double *q = call.inputs[0].data + head * r.dim, *dout = call.inputs[6].data + head * r.v_dim;
  const double scale = call.attrs.real("scale"), lse = call.inputs[5].data[head];
  const double delta = dot(dout, call.inputs[4].data + head * r.v_dim, r.v_dim);
  const std::vector<int64_t> rows = r.rows(t, h);
  for (int64_t row : rows) {
    const int64_t key = r.key_at(h, row) * r.dim;
    const double* k = call.inputs[1].data + key;
    const double p = std::exp(r.score(t, h, row) - lse);
    const double ds = scale * p * (dot(dout, r.value(h, row), r.v_dim) - delta);
    for (int64_t i = 0; i < r.dim; ++i) {
      call.outputs[0].data[head * r.dim + i] += ds * k[i];
      call.outputs[1].data[key + i] += ds * q[i];
    }
    double* dv = call.outputs[2].data + r.key_at(h, row) * r.v_dim;
    for (int64_t i = 0; i < r.v_dim; ++i) dv[i] += p * dout[i];
  }
  if (r.sink(h) != nullptr && !rows.empty()) call.outputs[3].data[h] -= std::exp(*r.sink(h) - lse) * delta;
}

}  // namespace

InferredTypes infer_sparse_attention(const OpSite& site, SparseLayout layout) {
  RETURN_IF_ERROR(check(site, layout));
  const Shape& q = site.inputs[0].shape;
  const Type out = {site.inputs[0].dtype, Shape{q[0], q[1], site.inputs[2].shape[-1]}};
  if (layout.paged) return std::vector<Type>{out};
  if (!layout.grad) return std::vector<Type>{out, Type{DType::f32, Shape{q[0], q[1]}}};
  RETURN_IF_ERROR(expect(site, site.inputs[4] == out && site.inputs[6] == out,
                         "out or dout is not of the output's type"));
  std::vector<Type> gradients = {site.inputs[0], site.inputs[1], site.inputs[2]};
  if (layout.sinks(site.attrs)) gradients.push_back(site.inputs.back());
  return gradients;
}

Cost sparse_attention_cost(const OpSite& site, SparseLayout layout) {
  Cost cost = streaming_cost(site, 0);
  const Shape &q = site.inputs[0].shape, &v = site.inputs[2].shape;
  const int64_t n = site.inputs[layout.ids()].shape[-1];
  cost.flops = (layout.grad ? 5 : 2) * q[0] * q[1] * n * (q[2] + v[-1]);
  return cost;
}

void sparse_attention_reference(const ReferenceCall& call, SparseLayout layout) {
  const Reader reader(call, layout);
  if (layout.grad) {
    for (const ReferenceTensor& output : call.outputs) std::fill_n(output.data, output.type.elements(), 0.0);
  }
  for (int64_t t = 0; t < call.inputs[0].type.shape[0]; ++t) {
    for (int64_t h = 0; h < reader.heads; ++h) {
      if (layout.grad) {
        add_gradients(reader, t, h);
        continue;
      }
      const double lse = attend(reader, t, h);
      if (!layout.paged) call.outputs[1].data[t * reader.heads + h] = lse;
    }
  }
}

}  // namespace tenon
