#include "ops/attention_grad.h"

#include <algorithm>
#include <cmath>

#include "ops/attention_rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"q", Elements::floating, 3},   {"k", Elements::floating, 3},
                                 {"v", Elements::floating, 3},   {"sequence_begin", Elements::i32, 1},
                                 {"out", Elements::floating, 3}, {"lse", Elements::f32, 2},
                                 {"dout", Elements::floating, 3}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const Type &q = site.inputs[0], &k = site.inputs[1], &v = site.inputs[2];
  const int64_t tokens = q.shape[0], heads = q.shape[1];
  RETURN_IF_ERROR(check_attention(site, q, k, v));
  RETURN_IF_ERROR(expect_extent(site, "the number of keys", k.shape[0], tokens));
  RETURN_IF_ERROR(expect_extent(site, "the number of values", v.shape[0], tokens));
  RETURN_IF_ERROR(expect_extent(site, "the length of sequence_begin", site.inputs[3].shape[0], tokens));
  const Type out{q.dtype, Shape{tokens, heads, v.shape[2]}};
  RETURN_IF_ERROR(expect(site, site.inputs[4] == out && site.inputs[6] == out,
                         "out or dout is not of the type that attention gives"));
  RETURN_IF_ERROR(
      expect(site, site.inputs[5].shape == Shape{tokens, heads}, "lse is not of shape [tokens, heads]"));
  return std::vector<Type>{q, k, v};
}

Cost cost(const OpSite& site) {
  const Shape &q = site.inputs[0].shape, &v = site.inputs[2].shape;
  const int64_t pairs = attention_pairs(q[0], site.attrs.integer("window"));
  Cost cost = streaming_cost(site, 0);
  cost.flops = 2 * pairs * q[1] * (3 * q[2] + 2 * v[2]);
  return cost;
}

// What one query row of one head adds to the gradients. Rows of k, v, dk and dv are `stride` elements apart.
struct QueryRow {
  const double *q, *k, *v, *dout;
  double *dq, *dk, *dv;
  int64_t head_dim, v_head_dim, k_stride, v_stride;
  double lse;
  double delta;  // dout · out: the sum over keys of p * dp
};

void add_query_row(const AttentionOptions& options, const QueryRow& row, int64_t begin, int64_t end) {
  for (int64_t j = begin; j < end; ++j) {
    const double* k = row.k + j * row.k_stride;
    const double* v = row.v + j * row.v_stride;
    const AttentionScore score = attention_score(options, row.q, k, row.head_dim);
    const double p = std::exp(score.value - row.lse);
    double dp = 0;
    for (int64_t i = 0; i < row.v_head_dim; ++i) {
      dp += row.dout[i] * v[i];
      row.dv[j * row.v_stride + i] += p * row.dout[i];
    }
    const double ds = p * (dp - row.delta) * score.slope * options.scale;
    for (int64_t i = 0; i < row.head_dim; ++i) {
      row.dq[i] += ds * k[i];
      row.dk[j * row.k_stride + i] += ds * row.q[i];
    }
  }
}

void reference(const ReferenceCall& call) {
  const AttentionOptions options = attention_options(call.attrs);
  const Shape &q_shape = call.inputs[0].type.shape, &v_shape = call.inputs[2].type.shape;
  const int64_t tokens = q_shape[0], heads = q_shape[1], head_dim = q_shape[2];
  const int64_t kv_heads = v_shape[1], v_head_dim = v_shape[2];
  for (const ReferenceTensor& output : call.outputs) std::fill_n(output.data, output.type.elements(), 0.0);
  for (int64_t t = 0; t < tokens; ++t) {
    const auto begin = attention_begin(options, static_cast<int64_t>(call.inputs[3].data[t]), t);
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t kv = h / (heads / kv_heads);
      const int64_t q_at = (t * heads + h) * head_dim, out_at = (t * heads + h) * v_head_dim;
      QueryRow row{.q = call.inputs[0].data + q_at,
                   .k = call.inputs[1].data + kv * head_dim,
                   .v = call.inputs[2].data + kv * v_head_dim,
                   .dout = call.inputs[6].data + out_at,
                   .dq = call.outputs[0].data + q_at,
                   .dk = call.outputs[1].data + kv * head_dim,
                   .dv = call.outputs[2].data + kv * v_head_dim,
                   .head_dim = head_dim,
                   .v_head_dim = v_head_dim,
                   .k_stride = kv_heads * head_dim,
                   .v_stride = kv_heads * v_head_dim,
                   .lse = call.inputs[5].data[t * heads + h],
                   .delta = 0};
      for (int64_t i = 0; i < v_head_dim; ++i) row.delta += row.dout[i] * call.inputs[4].data[out_at + i];
      add_query_row(options, row, begin, t + 1);
    }
  }
}

}  // namespace

const OpDef& attention_grad_op() {
  static constexpr OpDef def{.name = "attention_grad", .infer = infer, .cost = cost, .reference = reference};
  return def;
}

std::array<ValueId, 3> attention_grad(Builder& builder, const AttentionGradInputs& inputs,
                                      const AttentionOptions& options) {
  const auto outputs =
      builder.emit(attention_grad_op(),
                   {inputs.q, inputs.k, inputs.v, inputs.sequence_begin, inputs.out, inputs.lse, inputs.dout},
                   attention_attrs(options));
  return {outputs[0], outputs[1], outputs[2]};
}

}  // namespace tenon
