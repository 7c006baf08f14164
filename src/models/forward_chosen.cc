// Builds the choice of keys, token by token or block by block, and attention to the chosen ones.
#include <fmt/format.h>

#include <cmath>

#include "models/attend.h"
#include "ops/activation.h"
#include "ops/biased_sparse_attention.h"
#include "ops/block_top_k.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/causal_conv.h"
#include "ops/columns.h"
#include "ops/entry_ids.h"
#include "ops/fill.h"
#include "ops/index_top_k.h"
#include "ops/reshape.h"
#include "ops/rope.h"
#include "ops/rope_table.h"
#include "ops/scale.h"

namespace tenon {
namespace {

using Context = ForwardContext;

// Rotates x, the second half of each head's elements with a rope of their own.
ValueId rotate_halves(Context& c, const BlockIndexerSpec& spec, ValueId x) {
  const ValueId lower = rotate(c, spec.rope, x);
  if (spec.upper_rope < 0) return lower;
  const int64_t half = spec.dim / 2;
  return concat_columns(c.b, {slice_columns(c.b, lower, 0, half),
                              slice_columns(c.b, rotate(c, spec.upper_rope, x), half, half)});
}

// The mean of the last `block` rows, f32 weights aside in x's dtype.
ValueId trailing_mean(Context& c, int64_t block, int32_t layer, ValueId x) {
  const int64_t channels = c.b.shape(x)[1];
  const ValueId share =
      c.b.add_constant(fmt::format("share.{}", block), Shape{1}, {1.0f / static_cast<float>(block)});
  const ValueId weights = fill(c.b, share, Shape{channels, block});
  if (!c.options.cache) return causal_conv(c.b, x, weights, c.sequence_begin);
  const Type type{c.b.dtype(x), Shape{c.options.cache->streams, block - 1, channels}};
  const ValueId state = c.b.add_static(Role::cache, fmt::format("cache.{}.mean_window", layer), type);
  return causal_conv_cached(c.b, x, weights, {state, c.stream, c.positions});
}

TokenPlaces places(const Context& c) {
  return {c.positions, c.options.cache ? ValueId{} : c.sequence_begin};
}

struct IndexerHeads {
  ValueId q, k;  // [tokens, heads * dim] and [tokens, dim]
};

IndexerHeads project(Context& c, const BlockIndexerSpec& spec, ValueId x) {
  if (!spec.qk.present()) return {apply(c, spec.q, x), apply(c, spec.k, x)};
  const ValueId both = apply(c, spec.qk, x);
  const int64_t queries = spec.heads * spec.dim;
  return {slice_columns(c.b, both, 0, queries), slice_columns(c.b, both, queries, spec.dim)};
}

ValueId choose_pooled(Context& c, const BlockIndexerSpec& spec, int32_t layer, ValueId q, ValueId k) {
  const ValueId mean = spec.block == 1 ? k : trailing_mean(c, spec.block, layer, k);
  ValueId entry = reshape(c.b, apply(c, spec.k_norm, mean), Shape{c.tokens(), 1, spec.dim});
  entry = rotate_shifted(c, spec.rope, 1 - spec.block, entry);
  const ValueId one = c.b.add_constant("one", Shape{1}, {1.0f});
  const ValueId weights = fill(c.b, one, Shape{c.tokens(), spec.heads});
  const EntryOptions options{
      .n = spec.blocks, .scale = 1 / std::sqrt(static_cast<double>(spec.dim)), .stride = spec.block};
  const ValueId entries = c.options.cache
                              ? entry_top_k_paged(c.b,
                                                  {q, cached(c, "index", layer, entry), weights,
                                                   places_of(c, layer).page_table, c.stream, c.positions},
                                                  options)
                              : entry_top_k(c.b, q, entry, weights, c.sequence_begin, options);
  const ValueId ids = block_ids(c.b, entries, places(c), spec.block);
  return reshape(c.b, ids, Shape{c.tokens(), 1, c.b.shape(ids)[1]});
}

}  // namespace

ValueId choose_blocks(ForwardContext& c, const BlockIndexerSpec& spec, int32_t layer, ValueId x) {
  const IndexerHeads heads = project(c, spec, x);
  c.b.set_name(fmt::format("layer {} indexer", layer));
  ValueId q = reshape(c.b, heads.q, Shape{c.tokens(), spec.heads, spec.dim});
  q = rotate_halves(c, spec, apply(c, spec.q_norm, q));
  if (spec.pooled) return choose_pooled(c, spec, layer, q, heads.k);
  ValueId k = reshape(c.b, apply(c, spec.k_norm, heads.k), Shape{c.tokens(), 1, spec.dim});
  k = rotate_halves(c, spec, k);
  const BlockTopKOptions options{.n = spec.blocks, .block = spec.block, .local = spec.local};
  return c.options.cache ? block_top_k_paged(c.b,
                                             {q, cached(c, "index", layer, k), places_of(c, layer).page_table,
                                              c.stream, c.positions},
                                             options)
                         : block_top_k(c.b, q, k, c.sequence_begin, options);
}

ValueId choose_keys(ForwardContext& c, const IndexerSpec& spec, int32_t layer, ValueId x, ValueId q_latent) {
  ValueId q = reshape(c.b, apply(c, spec.q, q_latent), Shape{c.tokens(), spec.heads, spec.dim});
  ValueId k = reshape(c.b, apply(c, spec.k_norm, apply(c, spec.k, x)), Shape{c.tokens(), 1, spec.dim});
  ValueId weights = apply(c, spec.weights, x);
  weights = scale(c.b, as_f32(c, weights), 1 / std::sqrt(static_cast<double>(spec.heads)));
  c.b.set_name(fmt::format("layer {} indexer", layer));
  q = rotate_from(c, spec.rope, spec.rope_from, q);
  k = rotate_from(c, spec.rope, spec.rope_from, k);
  const double factor = 1 / std::sqrt(static_cast<double>(spec.dim));
  if (!c.options.cache) return index_top_k(c.b, q, k, weights, c.sequence_begin, spec.keys, factor);
  return index_top_k_paged(
      c.b, {q, cached(c, "index", layer, k), weights, places_of(c, layer).page_table, c.stream, c.positions},
      spec.keys, factor);
}

namespace {

// The keys that ids name as the op takes them: with groups of heads and sinks, or with neither.
struct Chosen {
  ValueId ids;
  ValueId sinks;
  bool biased;
};

Chosen chosen_keys(Context& c, const AttendSpec& spec, int64_t heads, ValueId ids) {
  const Shape shape = c.b.shape(ids);
  const int64_t n = shape[-1], groups = shape.rank() == 3 ? shape[1] : 1;
  Chosen out{ids, {}, groups > 1 || !spec.sinks.empty()};
  if (out.biased && shape.rank() == 2) out.ids = reshape(c.b, ids, Shape{c.tokens(), groups, n});
  if (!out.biased && shape.rank() == 3) out.ids = reshape(c.b, ids, Shape{c.tokens(), n});
  if (!spec.sinks.empty()) out.sinks = weight_vector(c, spec.sinks, Shape{heads});
  return out;
}

}  // namespace

ValueId attend_chosen_kept(ForwardContext& c, const AttendSpec& spec, int32_t layer, ValueId q,
                           const Kept& kept, ValueId ids) {
  const Chosen chosen = chosen_keys(c, spec, c.b.shape(q)[1], ids);
  const SparsePagedInputs inputs{q, kept.k, kept.v, places_of(c, layer).page_table, c.stream, chosen.ids};
  return chosen.biased ? biased_sparse_paged_attention(c.b, inputs, chosen.sinks, spec.scale)
                       : sparse_paged_attention(c.b, inputs, spec.scale);
}

ValueId attend_chosen(ForwardContext& c, const AttendSpec& spec, int32_t layer, ValueId q, ValueId k,
                      ValueId v, ValueId ids) {
  c.b.set_name(fmt::format("layer {} attention", layer));
  if (c.options.cache) {
    return attend_chosen_kept(c, spec, layer, q, {cached(c, "k", layer, k), cached(c, "v", layer, v), layer},
                              ids);
  }
  const Chosen chosen = chosen_keys(c, spec, c.b.shape(q)[1], ids);
  return chosen.biased ? biased_sparse_attention(c.b, {q, k, v, chosen.ids, chosen.sinks}, spec.scale)
                       : sparse_attention(c.b, q, k, v, chosen.ids, spec.scale);
}

ValueId attend_masked(ForwardContext& c, const AttentionSpec& a, int32_t layer, ValueId q, ValueId k,
                      ValueId v) {
  const ValueMaskSpec& mask = *a.value_mask;
  const int64_t tokens = c.tokens(), kv = a.kv_heads;
  const ValueId step = as_f32(c, apply(c, mask.step, reshape(c.b, v, Shape{tokens, kv * a.v_head_dim})));
  const ValueId rate = weight_vector(c, mask.rate, Shape{kv});
  ValueId weight = mul_row(c.b, activation(c.b, step, ActivationKind::softplus), rate);
  weight = activation(c.b, weight, ActivationKind::exp);
  const auto in_compute = [&](ValueId x) {
    return c.options.compute == DType::f32 ? x : cast(c.b, x, c.options.compute);
  };
  weight = in_compute(weight);
  // The weight is one more element of a key, against a constant of the query.
  const ValueId share = c.b.add_constant(fmt::format("mask_share.{}", layer), Shape{1},
                                         {static_cast<float>(1 / a.attend.scale)});
  q = concat_columns(c.b, {q, in_compute(fill(c.b, share, Shape{tokens, a.heads, 1}))});
  k = concat_columns(c.b, {k, reshape(c.b, weight, Shape{tokens, kv, 1})});
  const ValueId one = c.b.add_constant("one", Shape{1}, {1.0f});
  const ValueId ones = fill(c.b, one, Shape{tokens, 1});
  const ValueId query = reshape(c.b, in_compute(ones), Shape{tokens, 1, 1});
  std::vector<ValueId> ids;
  for (int64_t head = 0; head < kv; ++head) {
    const ValueId key = reshape(c.b, slice_columns(c.b, weight, head, 1), Shape{tokens, 1, 1});
    const std::string part = fmt::format("index_{}", head);
    c.b.set_name(fmt::format("layer {} mask", layer));
    ids.push_back(c.options.cache ? index_top_k_paged(c.b,
                                                      {query, cached(c, part.c_str(), layer, key), ones,
                                                       places_of(c, layer).page_table, c.stream, c.positions},
                                                      mask.keep, 1)
                                  : index_top_k(c.b, query, key, ones, c.sequence_begin, mask.keep, 1));
  }
  const ValueId joined = kv == 1 ? ids[0] : concat_columns(c.b, ids);
  return attend_chosen(c, a.attend, layer, q, k, v, reshape(c.b, joined, Shape{tokens, kv, mask.keep}));
}

ValueId rotate_from(ForwardContext& c, int32_t rope, int64_t from, ValueId x) {
  if (from == 0) return rotate(c, rope, x);
  const int64_t rest = c.b.shape(x)[2] - from;
  return concat_columns(c.b,
                        {slice_columns(c.b, x, 0, from), rotate(c, rope, slice_columns(c.b, x, from, rest))});
}

ValueId rotate_shifted(ForwardContext& c, int32_t rope_index, int64_t shift, ValueId x) {
  if (rope_index < 0 || shift == 0) return rotate(c, rope_index, x);
  const RopeSpec& spec = c.spec.ropes[static_cast<size_t>(rope_index)];
  CHECK(spec.long_from == 0, "shifted positions of a rope that depends on the length");
  const ValueId inv_freq = c.b.add_constant(fmt::format("rope.{}.inv_freq", rope_index),
                                            Shape{static_cast<int64_t>(spec.inv_freq.size())}, spec.inv_freq);
  const ValueId table = rope_table(c.b, shift_ids(c.b, c.positions, shift), inv_freq, spec.amplitude);
  return rope(c.b, x, table, spec.interleaved);
}

}  // namespace tenon
