#include "ops/paged_attention.h"

#include <algorithm>
#include <cmath>

#include "ops/attention_rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"q", Elements::floating, 3},       {"k_cache", Elements::floating, 4},
                                 {"v_cache", Elements::floating, 4}, {"page_table", Elements::i32, 2},
                                 {"stream", Elements::i32, 1},       {"positions", Elements::i32, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const Type &q = site.inputs[0], &k = site.inputs[1], &v = site.inputs[2];
  RETURN_IF_ERROR(check_attention(site, q, k, v));
  RETURN_IF_ERROR(expect_extent(site, "the number of pages of v_cache", v.shape[0], k.shape[0]));
  RETURN_IF_ERROR(expect_extent(site, "page_tokens of v_cache", v.shape[1], k.shape[1]));
  RETURN_IF_ERROR(expect_extent(site, "the length of stream", site.inputs[4].shape[0], q.shape[0]));
  RETURN_IF_ERROR(expect_extent(site, "the length of positions", site.inputs[5].shape[0], q.shape[0]));
  return std::vector<Type>{Type{q.dtype, Shape{q.shape[0], q.shape[1], v.shape[3]}}};
}

// Every token is taken to attend to as much as its page table can hold; how much it does is data.
Cost cost(const OpSite& site) {
  const Shape &q = site.inputs[0].shape, &k = site.inputs[1].shape, &v = site.inputs[2].shape;
  const int64_t window = site.attrs.integer("window");
  const int64_t held = site.inputs[3].shape[1] * k[1];
  const int64_t reach = window > 0 ? std::min(window, held) : held;
  Cost cost = streaming_cost(site, 0);
  cost.flops = 2 * q[0] * reach * q[1] * (q[2] + v[3]);
  return cost;
}

// Where a position of a stream lies in the cache, in tokens.
int64_t cache_slot(const ReferenceCall& call, int64_t stream, int64_t position) {
  const Shape &cache = call.inputs[1].type.shape, &table = call.inputs[3].type.shape;
  const int64_t page_tokens = cache[1];
  CHECK(stream < table[0] && position / page_tokens < table[1], "a position is outside the page table");
  const auto page = static_cast<int64_t>(call.inputs[3].data[stream * table[1] + position / page_tokens]);
  CHECK(page >= 0 && page < cache[0], "a page is outside the cache");
  return page * page_tokens + position % page_tokens;
}

// One head of one token, over the cache slots it attends to.
void attend(const ReferenceCall& call, const AttentionOptions& options, int64_t t, int64_t h,
            const std::vector<int64_t>& slots) {
  const Shape &q_shape = call.inputs[0].type.shape, &v_shape = call.inputs[2].type.shape;
  const int64_t heads = q_shape[1], head_dim = q_shape[2], kv_heads = v_shape[2], v_head_dim = v_shape[3];
  const int64_t kv = h / (heads / kv_heads);
  const double* q = call.inputs[0].data + (t * heads + h) * head_dim;
  double* out = call.outputs[0].data + (t * heads + h) * v_head_dim;
  std::vector<double> scores;
  for (int64_t slot : slots) {
    const double* k = call.inputs[1].data + (slot * kv_heads + kv) * head_dim;
    scores.push_back(attention_score(options, q, k, head_dim).value);
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double score : scores) total += std::exp(score - largest);
  for (size_t j = 0; j < slots.size(); ++j) {
    const double* v = call.inputs[2].data + (slots[j] * kv_heads + kv) * v_head_dim;
    const double p = std::exp(scores[j] - largest) / total;
    for (int64_t i = 0; i < v_head_dim; ++i) out[i] += p * v[i];
  }
}

void reference(const ReferenceCall& call) {
  const AttentionOptions options = attention_options(call.attrs);
  const int64_t tokens = call.inputs[0].type.shape[0], heads = call.inputs[0].type.shape[1];
  std::fill_n(call.outputs[0].data, call.outputs[0].type.elements(), 0.0);
  for (int64_t t = 0; t < tokens; ++t) {
    const auto stream = static_cast<int64_t>(call.inputs[4].data[t]);
    if (stream < 0) continue;
    const auto position = static_cast<int64_t>(call.inputs[5].data[t]);
    std::vector<int64_t> slots;
    for (int64_t j = attention_begin(options, 0, position); j <= position; ++j) {
      slots.push_back(cache_slot(call, stream, j));
    }
    for (int64_t h = 0; h < heads; ++h) attend(call, options, t, h, slots);
  }
}

}  // namespace

const OpDef& paged_attention_op() {
  static constexpr OpDef def{.name = "paged_attention", .infer = infer, .cost = cost, .reference = reference};
  return def;
}

ValueId paged_attention(Builder& builder, const PagedAttentionInputs& inputs,
                        const AttentionOptions& options) {
  return builder.emit_one(
      paged_attention_op(),
      {inputs.q, inputs.k_cache, inputs.v_cache, inputs.page_table, inputs.stream, inputs.positions},
      attention_attrs(options));
}

}  // namespace tenon
