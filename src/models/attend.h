// What attention mixers share when a forward Program is built: keys and values as rows or in caches, and what
// is done to queries and outputs. For models/ alone.
#pragma once

#include "models/layers.h"

namespace tenon {

// Where a layer keeps its keys.
const CachePlaces& places_of(const ForwardContext& c, int32_t layer);
// Writes rows [tokens, heads, dim] to the cache of a layer's part; returns the cache.
ValueId cached(ForwardContext& c, const char* part, int32_t layer, ValueId rows);

// k and v as layer `of` keeps them: rows, or caches.
struct Kept {
  ValueId k, v;
  int32_t of;
};
// q [tokens, heads, dim] against them: [tokens, heads, v_dim].
ValueId attend_kept(ForwardContext& c, const AttendSpec& spec, int32_t layer, ValueId q, const Kept& kept,
                    const TokenBiases& biases = {});
// The same with the keys that ids name, as attend_chosen() takes them, from caches.
ValueId attend_chosen_kept(ForwardContext& c, const AttendSpec& spec, int32_t layer, ValueId q,
                           const Kept& kept, ValueId ids);

// q [tokens, heads, dim] times what a position asks for.
ValueId scale_by_position(ForwardContext& c, const std::optional<PositionScale>& scale, ValueId q);
// out * gate, [tokens, heads * dim].
ValueId gated(ForwardContext& c, GateKind kind, ValueId out, ValueId gate, int64_t heads);

}  // namespace tenon
