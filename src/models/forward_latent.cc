// Builds multi-head latent attention.
#include <fmt/format.h>

#include "models/layers.h"
#include "ops/columns.h"
#include "ops/reshape.h"

namespace tenon {
namespace {

struct Queries {
  ValueId latent;  // normed
  ValueId q;       // [tokens, heads * qk_dim]
  ValueId gate;    // of the output, where it comes with the queries
};

Queries project_queries(ForwardContext& c, const LatentAttentionSpec& a, ValueId x) {
  Queries out;
  if (!a.q_a.present()) {
    out.q = apply(c, a.q, x);
    return out;
  }
  const ValueId raw = apply(c, a.q_a, x);
  out.latent = apply(c, a.q_a_norm, raw);
  if (!a.q_gate.present()) {
    out.q = apply(c, a.q_b, times(c, out.latent, a.q_latent_scale));
    return out;
  }
  const int64_t qk_dim = a.nope_dim + a.rope_dim;
  const ValueId both = reshape(c.b, apply(c, a.q_gate, concat_columns(c.b, {out.latent, raw})),
                               Shape{c.tokens(), a.heads, qk_dim + a.v_head_dim});
  out.q = reshape(c.b, slice_columns(c.b, both, 0, qk_dim), Shape{c.tokens(), a.heads * qk_dim});
  out.gate =
      reshape(c.b, slice_columns(c.b, both, qk_dim, a.v_head_dim), Shape{c.tokens(), a.heads * a.v_head_dim});
  return out;
}

}  // namespace

ValueId apply_latent_attention(ForwardContext& c, const LatentAttentionSpec& a, int32_t layer, ValueId x) {
  const int64_t qk_dim = a.nope_dim + a.rope_dim, latent = a.kv_b.in;
  const Queries queries = project_queries(c, a, x);
  if (a.indexer) c.chosen[layer] = choose_keys(c, *a.indexer, layer, x, queries.latent);
  ValueId q = reshape(c.b, queries.q, Shape{c.tokens(), a.heads, qk_dim});
  const ValueId down = apply(c, a.kv_a, x);
  const ValueId compressed = slice_columns(c.b, down, 0, latent);
  ValueId k_rope = apply(c, a.k_rope_norm, slice_columns(c.b, down, latent, a.rope_dim));
  const ValueId kv = apply(c, a.kv_b, times(c, apply(c, a.kv_a_norm, compressed), a.kv_latent_scale));
  const ValueId by_head = reshape(c.b, kv, Shape{c.tokens(), a.heads, a.nope_dim + a.v_head_dim});
  c.b.set_name(fmt::format("layer {} attention", layer));
  k_rope = rotate(c, a.rope, reshape(c.b, k_rope, Shape{c.tokens(), 1, a.rope_dim}));
  const ValueId q_rope = rotate(c, a.rope, slice_columns(c.b, q, a.nope_dim, a.rope_dim));
  const ValueId shared = repeat_columns(c.b, reshape(c.b, k_rope, Shape{c.tokens(), a.rope_dim}), a.heads);
  q = concat_columns(c.b, {slice_columns(c.b, q, 0, a.nope_dim), q_rope});
  q = scale_by_position(c, a.q_scale, q);
  const ValueId k = concat_columns(c.b, {slice_columns(c.b, by_head, 0, a.nope_dim),
                                         reshape(c.b, shared, Shape{c.tokens(), a.heads, a.rope_dim})});
  const ValueId v = slice_columns(c.b, by_head, a.nope_dim, a.v_head_dim);
  const bool sparse = a.indexer || a.indices_from >= 0;
  const int32_t chooser = a.indexer ? layer : a.indices_from;
  ValueId out = sparse ? attend_chosen(c, a.attend, layer, q, k, v, c.chosen.at(chooser))
                       : attend(c, a.attend, layer, q, k, v);
  out = reshape(c.b, out, Shape{c.tokens(), a.heads * a.v_head_dim});
  if (a.gate_kind != GateKind::none) {
    const ValueId gate = queries.gate.valid() ? queries.gate : apply(c, a.gate, x);
    out = gated(c, a.gate_kind, out, gate, a.heads);
  }
  return apply(c, a.o, out);
}

}  // namespace tenon
