// Builds compressed attention: a window of keys, and entries that each stand for several tokens. Key and
// entry of a token stand side by side, so that both have ids in one table of keys (ops/entry_ids.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/attend.h"
#include "ops/biased_sparse_attention.h"
#include "ops/columns.h"
#include "ops/entry_ids.h"
#include "ops/entry_pool.h"
#include "ops/index_top_k.h"
#include "ops/reshape.h"
#include "ops/rope.h"
#include "ops/scale.h"

namespace tenon {
namespace {

using Context = ForwardContext;

// Element of a head of `dim` where the rotated part begins.
int64_t rotated_from(const Context& c, int32_t rope, int64_t dim) {
  return dim - 2 * static_cast<int64_t>(c.spec.ropes[static_cast<size_t>(rope)].inv_freq.size());
}

// An entry for every token, [tokens, 1, width]; those that end no stride are zero.
ValueId compress(Context& c, const CompressorSpec& s, int32_t rope, int32_t layer, const char* part,
                 ValueId x) {
  EntryPoolInputs inputs;
  inputs.x = apply(c, s.x, x);
  inputs.gate = apply(c, s.gate, x);
  inputs.bias = weight_vector(c, s.bias, Shape{s.stride, s.x.out});
  const int64_t width = s.x.out / s.parts;
  c.b.set_name(fmt::format("layer {} {}", layer, part));
  ValueId pooled;
  if (c.options.cache) {
    const Type state{c.b.dtype(inputs.x), Shape{c.options.cache->streams, s.parts * s.stride, 2 * s.x.out}};
    const ValueId kept = c.b.add_static(Role::cache, fmt::format("cache.{}.{}_window", layer, part), state);
    pooled = entry_pool_cached(c.b, inputs, {kept, c.stream, c.positions}, s.parts);
  } else {
    pooled = entry_pool(c.b, inputs, c.sequence_begin, s.parts);
  }
  const ValueId entry = reshape(c.b, apply(c, s.norm, pooled), Shape{c.tokens(), 1, width});
  const int64_t from = rotated_from(c, rope, width);
  const ValueId turned = rotate_shifted(c, rope, 1 - s.stride, slice_columns(c.b, entry, from, width - from));
  return from == 0 ? turned : concat_columns(c.b, {slice_columns(c.b, entry, 0, from), turned});
}

TokenPlaces places(const Context& c) {
  return {c.positions, c.options.cache ? ValueId{} : c.sequence_begin};
}

// Entries that a token can have before it.
int64_t most_entries(const Context& c, int64_t stride) {
  const int64_t tokens =
      c.options.cache ? c.options.cache->max_pages * c.options.cache->page_tokens : c.tokens();
  return std::max<int64_t>(1, tokens / stride);
}

ValueId choose_entries(Context& c, const CompressedAttentionSpec& a, int32_t layer, ValueId x,
                       ValueId q_latent) {
  const int64_t stride = a.compressor->stride;
  if (!a.indexer) return every_entry(c.b, places(c), most_entries(c, stride), stride);
  const EntryIndexerSpec& s = *a.indexer;
  const ValueId entry = compress(c, s.compressor, a.rope, layer, "indexer", x);
  ValueId q = reshape(c.b, apply(c, s.q, q_latent), Shape{c.tokens(), s.heads, s.dim});
  q = rotate_from(c, a.rope, rotated_from(c, a.rope, s.dim), q);
  const double share = 1 / std::sqrt(static_cast<double>(s.heads));
  const ValueId weights = scale(c.b, as_f32(c, apply(c, s.weights, x)), share);
  const EntryOptions options{.n = std::min(s.entries, most_entries(c, stride)),
                             .scale = 1 / std::sqrt(static_cast<double>(s.dim)),
                             .stride = stride};
  c.b.set_name(fmt::format("layer {} indexer", layer));
  if (!c.options.cache) return entry_top_k(c.b, q, entry, weights, c.sequence_begin, options);
  return entry_top_k_paged(
      c.b,
      {q, cached(c, "index", layer, entry), weights, places_of(c, layer).page_table, c.stream, c.positions},
      options);
}

// Attention of q to the window of keys and to the entries.
ValueId attend_compressed(Context& c, const CompressedAttentionSpec& a, int32_t layer, ValueId q, ValueId key,
                          ValueId entry, ValueId entries) {
  const int64_t dim = a.head_dim;
  const ValueId ids = window_entry_ids(c.b, entries, places(c), a.attend.window);
  const ValueId by_group = reshape(c.b, ids, Shape{c.tokens(), 1, c.b.shape(ids)[1]});
  const ValueId pair = reshape(c.b, concat_columns(c.b, {key, entry}), Shape{c.tokens(), 2, dim});
  const ValueId sinks = weight_vector(c, a.attend.sinks, Shape{a.heads});
  c.b.set_name(fmt::format("layer {} attention", layer));
  if (!c.options.cache) {
    const ValueId keys = reshape(c.b, pair, Shape{2 * c.tokens(), 1, dim});
    return biased_sparse_attention(c.b, {q, keys, keys, by_group, sinks}, a.attend.scale);
  }
  const CacheOptions& cache = *c.options.cache;
  const ValueId keys =
      reshape(c.b, cached(c, "k", layer, pair), Shape{cache.pages, 2 * cache.page_tokens, 1, dim});
  return biased_sparse_paged_attention(
      c.b, {q, keys, keys, places_of(c, layer).page_table, c.stream, by_group}, sinks, a.attend.scale);
}

// The projection of each group of heads by its own matrix, then of all together.
ValueId project_out(Context& c, const CompressedAttentionSpec& a, ValueId out) {
  std::vector<ValueId> parts;
  for (size_t g = 0; g < a.o_a.size(); ++g) {
    const int64_t width = a.o_a[g].in;
    parts.push_back(apply(c, a.o_a[g], slice_columns(c.b, out, static_cast<int64_t>(g) * width, width)));
  }
  return apply(c, a.o_b, parts.size() == 1 ? parts[0] : concat_columns(c.b, parts));
}

}  // namespace

ValueId apply_compressed_attention(ForwardContext& c, const CompressedAttentionSpec& a, int32_t layer,
                                   ValueId x) {
  const int64_t dim = a.head_dim, from = rotated_from(c, a.rope, dim);
  const ValueId q_latent = apply(c, a.q_a_norm, apply(c, a.q_a, x));
  ValueId q = reshape(c.b, apply(c, a.q_b, q_latent), Shape{c.tokens(), a.heads, dim});
  q = rotate_from(c, a.rope, from, apply(c, a.q_norm, q));
  const ValueId normed = apply(c, a.kv_norm, apply(c, a.kv, x));
  const ValueId key = rotate_from(c, a.rope, from, reshape(c.b, normed, Shape{c.tokens(), 1, dim}));
  ValueId out;
  if (a.compressor) {
    const ValueId entry = compress(c, *a.compressor, a.rope, layer, "compressor", x);
    out = attend_compressed(c, a, layer, q, key, entry, choose_entries(c, a, layer, x, q_latent));
  } else {
    out = attend(c, a.attend, layer, q, key, key);
  }
  const RopeSpec& spec = c.spec.ropes[static_cast<size_t>(a.rope)];
  const ValueId back = rope(c.b, slice_columns(c.b, out, from, dim - from),
                            c.rope_tables[static_cast<size_t>(a.rope)], spec.interleaved, true);
  if (from > 0) out = concat_columns(c.b, {slice_columns(c.b, out, 0, from), back});
  return project_out(c, a, reshape(c.b, from > 0 ? out : back, Shape{c.tokens(), a.heads * dim}));
}

}  // namespace tenon
