// Builds latent attention. Packed sequences expand the latent to keys and values of all heads; decoding keeps
// the latent and the rotary key alone, and attends to those.
#include <fmt/format.h>

#include "models/attend.h"
#include "ops/columns.h"
#include "ops/grouped_matmul.h"
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

struct LatentMixer {
  ForwardContext& c;
  int32_t layer;
  ValueId x;

  // Queries and keys of latent attention before the keys and values are made from the latent.
  struct Latent {
    ValueId q_nope, q_rope;  // [tokens, heads, dim]
    ValueId latent, k_rope;  // [tokens, dim], [tokens, 1, dim]
    ValueId gate;            // of the output, where it comes with the queries
  };

  Latent latent_operands(const LatentAttentionSpec& a) const {
    const int64_t latent = a.kv_b.in;
    const Queries queries = project_queries(c, a, x);
    if (a.indexer) c.chosen[layer] = choose_keys(c, *a.indexer, layer, x, queries.latent);
    const ValueId q = reshape(c.b, queries.q, Shape{c.tokens(), a.heads, a.nope_dim + a.rope_dim});
    const ValueId down = apply(c, a.kv_a, x);
    Latent out;
    out.gate = queries.gate;
    out.latent = slice_columns(c.b, down, 0, latent);
    out.k_rope = apply(c, a.k_rope_norm, slice_columns(c.b, down, latent, a.rope_dim));
    out.latent = times(c, apply(c, a.kv_a_norm, out.latent), a.kv_latent_scale);
    c.b.set_name(fmt::format("layer {} attention", layer));
    out.k_rope = rotate(c, a.rope, reshape(c.b, out.k_rope, Shape{c.tokens(), 1, a.rope_dim}));
    out.q_nope = slice_columns(c.b, q, 0, a.nope_dim);
    out.q_rope = rotate(c, a.rope, slice_columns(c.b, q, a.nope_dim, a.rope_dim));
    return out;
  }

  // Keys and values of all heads, made from the latent.
  ValueId attend_expanded(const LatentAttentionSpec& a, const Latent& in) const {
    const ValueId kv = apply(c, a.kv_b, in.latent);
    const ValueId by_head = reshape(c.b, kv, Shape{c.tokens(), a.heads, a.nope_dim + a.v_head_dim});
    c.b.set_name(fmt::format("layer {} attention", layer));
    const ValueId rope = repeat_columns(c.b, reshape(c.b, in.k_rope, Shape{c.tokens(), a.rope_dim}), a.heads);
    const ValueId q = scale_by_position(c, a.q_scale, concat_columns(c.b, {in.q_nope, in.q_rope}));
    const ValueId k = concat_columns(c.b, {slice_columns(c.b, by_head, 0, a.nope_dim),
                                           reshape(c.b, rope, Shape{c.tokens(), a.heads, a.rope_dim})});
    const ValueId v = slice_columns(c.b, by_head, a.nope_dim, a.v_head_dim);
    const int32_t chooser = a.indexer ? layer : a.indices_from;
    if (chooser < 0) return attend(c, a.attend, layer, q, k, v);
    return attend_chosen(c, a.attend, layer, q, k, v, c.chosen.at(chooser));
  }

  // The same from a cache of latents: the projection of keys is applied to the queries, that of values to
  // what comes out, so that all heads attend to the latent itself (DeepSeek-V2, section 2.1.2).
  ValueId attend_absorbed(const LatentAttentionSpec& a, const Latent& in) const {
    const int64_t tokens = c.tokens(), latent = a.kv_b.in, width = latent + a.rope_dim;
    const int64_t by_head = a.nope_dim + a.v_head_dim;
    const ValueId weight = weight_matrix(c, a.kv_b.path + ".weight", Shape{a.kv_b.out, latent});
    const ValueId heads = heads_of_rows(a.heads);
    c.b.set_name(a.kv_b.path);
    const ValueId stacked = reshape(c.b, weight, Shape{a.heads, by_head, latent});
    const ValueId padded = pad_columns(c.b, in.q_nope, 0, by_head);
    const ValueId absorbed = grouped_matmul(c.b, reshape(c.b, padded, Shape{tokens * a.heads, by_head}),
                                            stacked, heads, {.trans_b = false});
    c.b.set_name(fmt::format("layer {} attention", layer));
    const ValueId q_latent = reshape(c.b, absorbed, Shape{tokens, a.heads, latent});
    const ValueId q = scale_by_position(c, a.q_scale, concat_columns(c.b, {q_latent, in.q_rope}));
    const ValueId k_rope = reshape(c.b, in.k_rope, Shape{tokens, a.rope_dim});
    const ValueId row = reshape(c.b, concat_columns(c.b, {in.latent, k_rope}), Shape{tokens, 1, width});
    const ValueId kept = cached(c, "latent", layer, row);
    const int32_t chooser = a.indexer ? layer : a.indices_from;
    ValueId out = chooser < 0
                      ? attend_kept(c, a.attend, layer, q, {kept, kept, layer})
                      : attend_chosen_kept(c, a.attend, layer, q, {kept, kept, layer}, c.chosen.at(chooser));
    out = slice_columns(c.b, reshape(c.b, out, Shape{tokens * a.heads, width}), 0, latent);
    c.b.set_name(a.kv_b.path);
    out = grouped_matmul(c.b, out, stacked, heads);
    return slice_columns(c.b, out, a.nope_dim, a.v_head_dim);
  }

  // The head of each row of [tokens * heads, ...], i32.
  ValueId heads_of_rows(int64_t heads) const {
    const int64_t rows = c.tokens() * heads;
    std::vector<float> values(static_cast<size_t>(rows));
    for (int64_t r = 0; r < rows; ++r) values[static_cast<size_t>(r)] = static_cast<float>(r % heads);
    return add_indices(c.b, fmt::format("{}heads.{}", c.options.input_prefix, heads), std::move(values));
  }

  ValueId mix(const LatentAttentionSpec& a) const {
    const Latent in = latent_operands(a);
    c.b.set_name(fmt::format("layer {} attention", layer));
    ValueId out = c.options.cache ? attend_absorbed(a, in) : attend_expanded(a, in);
    out = reshape(c.b, out, Shape{c.tokens(), a.heads * a.v_head_dim});
    if (a.gate_kind != GateKind::none) {
      out = gated(c, a.gate_kind, out, in.gate.valid() ? in.gate : apply(c, a.gate, x), a.heads);
    }
    return apply(c, a.o, out);
  }
};

}  // namespace

ValueId apply_latent_attention(ForwardContext& c, const LatentAttentionSpec& spec, int32_t layer, ValueId x) {
  return LatentMixer{c, layer, x}.mix(spec);
}

}  // namespace tenon
