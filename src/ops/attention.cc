#include "ops/attention.h"

#include <algorithm>
#include <cmath>

#include "ops/attention_grad.h"
#include "ops/attention_rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"q", Elements::floating, 3},
                                 {"k", Elements::floating, 3},
                                 {"v", Elements::floating, 3},
                                 {"sequence_begin", Elements::i32, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const Type &q = site.inputs[0], &k = site.inputs[1], &v = site.inputs[2];
  const int64_t tokens = q.shape[0], heads = q.shape[1];
  RETURN_IF_ERROR(check_attention(site, q, k, v));
  RETURN_IF_ERROR(expect_extent(site, "the number of keys", k.shape[0], tokens));
  RETURN_IF_ERROR(expect_extent(site, "the number of values", v.shape[0], tokens));
  RETURN_IF_ERROR(expect_extent(site, "the length of sequence_begin", site.inputs[3].shape[0], tokens));
  return std::vector<Type>{Type{q.dtype, Shape{tokens, heads, v.shape[2]}},
                           Type{DType::f32, Shape{tokens, heads}}};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  CHECK(!site.output_gradients[1].valid(), "attention's lse has no gradient rule");
  const auto& in = site.op.inputs;
  if (!site.output_gradients[0].valid() || !(site.needed[0] || site.needed[1] || site.needed[2])) {
    return std::vector<ValueId>(4);
  }
  const auto gradients = attention_grad(site.builder,
                                        {.q = in[0],
                                         .k = in[1],
                                         .v = in[2],
                                         .sequence_begin = in[3],
                                         .out = site.op.outputs[0],
                                         .lse = site.op.outputs[1],
                                         .dout = site.output_gradients[0]},
                                        attention_options(site.op.attrs));
  std::vector<ValueId> out(4);
  for (size_t i = 0; i < 3; ++i) {
    if (site.needed[i]) out[i] = gradients[i];
  }
  return out;
}

Cost cost(const OpSite& site) {
  const Shape &q = site.inputs[0].shape, &v = site.inputs[2].shape;
  const int64_t pairs = attention_pairs(q[0], site.attrs.integer("window"));
  Cost cost = streaming_cost(site, 0);
  cost.flops = 2 * pairs * q[1] * (q[2] + v[2]);
  return cost;
}

void reference(const ReferenceCall& call) {
  const AttentionOptions options = attention_options(call.attrs);
  const Shape &q_shape = call.inputs[0].type.shape, &v_shape = call.inputs[2].type.shape;
  const int64_t tokens = q_shape[0], heads = q_shape[1], head_dim = q_shape[2];
  const int64_t kv_heads = v_shape[1], v_head_dim = v_shape[2];
  std::vector<double> scores(static_cast<size_t>(tokens));
  for (int64_t t = 0; t < tokens; ++t) {
    const auto begin = attention_begin(options, static_cast<int64_t>(call.inputs[3].data[t]), t);
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t kv = h / (heads / kv_heads);
      const double* q = call.inputs[0].data + (t * heads + h) * head_dim;
      double largest = -INFINITY;
      for (int64_t j = begin; j <= t; ++j) {
        const double* k = call.inputs[1].data + (j * kv_heads + kv) * head_dim;
        scores[j] = attention_score(options, q, k, head_dim).value;
        largest = std::max(largest, scores[j]);
      }
      double total = 0;
      for (int64_t j = begin; j <= t; ++j) total += std::exp(scores[j] - largest);
      const double lse = largest + std::log(total);
      call.outputs[1].data[t * heads + h] = lse;
      double* out = call.outputs[0].data + (t * heads + h) * v_head_dim;
      std::fill_n(out, v_head_dim, 0.0);
      for (int64_t j = begin; j <= t; ++j) {
        const double* v = call.inputs[2].data + (j * kv_heads + kv) * v_head_dim;
        const double p = std::exp(scores[j] - lse);
        for (int64_t i = 0; i < v_head_dim; ++i) out[i] += p * v[i];
      }
    }
  }
}

}  // namespace

const OpDef& attention_op() {
  static constexpr OpDef def{
      .name = "attention", .infer = infer, .gradient = gradient, .cost = cost, .reference = reference};
  return def;
}

AttentionOutputs attention(Builder& builder, ValueId q, ValueId k, ValueId v, ValueId sequence_begin,
                           const AttentionOptions& options) {
  const auto outputs = builder.emit(attention_op(), {q, k, v, sequence_begin}, attention_attrs(options));
  return {outputs[0], outputs[1]};
}

}  // namespace tenon
