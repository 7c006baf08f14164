#include <algorithm>
#include <cmath>

#include "ops/biased_attention_rules.h"

namespace tenon {
namespace {

constexpr size_t kPlain = 6;  // q, k_cache, v_cache, page_table, stream, positions

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_biases(site, kPlain));
  const OpSite plain{site.op, site.attrs, site.inputs.first(kPlain), {}};
  return paged_attention_op().infer(plain);
}

Cost cost(const OpSite& site) {
  return paged_attention_op().cost(OpSite{site.op, site.attrs, site.inputs.first(kPlain), site.outputs});
}

struct Token {
  int64_t t, stream, position;
};

int64_t cache_slot(const ReferenceCall& call, int64_t stream, int64_t position) {
  const int64_t page_tokens = call.inputs[1].type.shape[1], width = call.inputs[3].type.shape[1];
  const auto page = static_cast<int64_t>(call.inputs[3].data[stream * width + position / page_tokens]);
  CHECK(page >= 0 && page < call.inputs[1].type.shape[0], "a page is outside the cache");
  return page * page_tokens + position % page_tokens;
}

void attend(const ReferenceCall& call, const Token& token, int64_t h) {
  const BiasedAttentionOptions options = biased_attention_options(call.attrs);
  const BiasData data = bias_data(call, kPlain);
  const Shape &q_shape = call.inputs[0].type.shape, &v_shape = call.inputs[2].type.shape;
  const int64_t heads = q_shape[1], head_dim = q_shape[2], kv_heads = v_shape[2], v_head_dim = v_shape[3];
  const int64_t kv = h / (heads / kv_heads);
  const double* q = call.inputs[0].data + (token.t * heads + h) * head_dim;
  double* out = call.outputs[0].data + (token.t * heads + h) * v_head_dim;
  const int64_t begin = first_seen(options, token.position);
  std::vector<double> scores;
  const double sink = data.sinks ? data.sinks[data.sink_index(token.t, h)] : -INFINITY;
  double largest = sink;
  for (int64_t j = begin; j <= token.position; ++j) {
    const int64_t slot = cache_slot(call, token.stream, j);
    const double* k = call.inputs[1].data + (slot * kv_heads + kv) * head_dim;
    scores.push_back(attention_score(options, q, k, head_dim).value +
                     position_bias(options, data, token.t, h, token.position, j));
    largest = std::max(largest, scores.back());
  }
  double total = data.sinks ? std::exp(sink - largest) : 0;
  for (double score : scores) total += std::exp(score - largest);
  for (int64_t j = begin; j <= token.position; ++j) {
    const int64_t slot = cache_slot(call, token.stream, j);
    const double* v = call.inputs[2].data + (slot * kv_heads + kv) * v_head_dim;
    const double p = std::exp(scores[static_cast<size_t>(j - begin)] - largest) / total;
    for (int64_t i = 0; i < v_head_dim; ++i) out[i] += p * v[i];
  }
}

void reference(const ReferenceCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0], heads = call.inputs[0].type.shape[1];
  std::fill_n(call.outputs[0].data, call.outputs[0].type.elements(), 0.0);
  for (int64_t t = 0; t < tokens; ++t) {
    const Token token{t, static_cast<int64_t>(call.inputs[4].data[t]),
                      static_cast<int64_t>(call.inputs[5].data[t])};
    for (int64_t h = 0; token.stream >= 0 && h < heads; ++h) attend(call, token, h);
  }
}

}  // namespace

const OpDef& biased_paged_attention_op() {
  static constexpr OpDef def{
      .name = "biased_paged_attention", .infer = infer, .cost = cost, .reference = reference};
  return def;
}

ValueId biased_paged_attention(Builder& builder, const PagedAttentionInputs& inputs,
                               const AttentionBiases& biases, const BiasedAttentionOptions& options) {
  std::vector<ValueId> plain = {inputs.q,          inputs.k_cache, inputs.v_cache,
                                inputs.page_table, inputs.stream,  inputs.positions};
  return builder.emit_one(biased_paged_attention_op(), with_biases(std::move(plain), biases),
                          biased_attention_attrs(biases, options));
}

}  // namespace tenon
