// Builds the mixers of a forward Program: softmax attention and latent attention.
#include <fmt/format.h>

#include "models/layers.h"
#include "ops/attention.h"
#include "ops/biased_attention.h"
#include "ops/broadcast.h"
#include "ops/cache_write.h"
#include "ops/columns.h"
#include "ops/mul.h"
#include "ops/paged_attention.h"
#include "ops/reshape.h"
#include "ops/rope.h"

namespace tenon {
namespace {

using Context = ForwardContext;

struct Heads {
  ValueId q, k, v;  // [tokens, heads, dim]
};

BiasedAttentionOptions biased_options(const AttendSpec& spec) {
  BiasedAttentionOptions options;
  options.scale = spec.scale;
  options.window = spec.window;
  options.softcap = spec.softcap;
  options.chunk = spec.chunk;
  options.alibi = spec.alibi;
  options.alibi_scale = spec.alibi_scale;
  return options;
}

AttentionBiases attention_biases(Context& c, const AttendSpec& spec, int32_t layer, int64_t heads) {
  AttentionBiases biases;
  if (!spec.sinks.empty()) biases.sinks = weight_vector(c, spec.sinks, Shape{heads});
  if (spec.alibi != Alibi::none) {
    biases.slopes = c.b.add_constant(fmt::format("alibi.{}", layer), Shape{heads}, spec.slopes);
  }
  return biases;
}

ValueId cached(Context& c, const char* part, int32_t layer, ValueId rows) {
  const CacheOptions& cache = *c.options.cache;
  const Shape& shape = c.b.shape(rows);
  const Type type{cache.dtype, Shape{cache.pages, cache.page_tokens, shape[1], shape[2]}};
  const ValueId state = c.b.add_static(Role::cache, fmt::format("cache.{}.{}", layer, part), type);
  return cache_write(c.b, state, rows, c.slots);
}

ValueId attend(Context& c, const AttendSpec& spec, int32_t layer, const Heads& h) {
  const bool biased = !spec.sinks.empty() || spec.alibi != Alibi::none || spec.chunk > 0;
  const BiasedAttentionOptions options = biased_options(spec);
  const AttentionBiases biases = attention_biases(c, spec, layer, c.b.shape(h.q)[1]);
  c.b.set_name(fmt::format("layer {} attention", layer));
  if (c.options.cache) {
    const PagedAttentionInputs inputs{
        h.q, cached(c, "k", layer, h.k), cached(c, "v", layer, h.v), c.page_table, c.stream, c.positions};
    return biased ? biased_paged_attention(c.b, inputs, biases, options)
                  : paged_attention(c.b, inputs, options);
  }
  return biased ? biased_attention(c.b, h.q, h.k, h.v, c.sequence_begin, biases, options).out
                : attention(c.b, h.q, h.k, h.v, c.sequence_begin, options).out;
}

ValueId rotate(Context& c, int32_t rope_index, ValueId x) {
  if (rope_index < 0) return x;
  const size_t index = static_cast<size_t>(rope_index);
  return rope(c.b, x, c.rope_tables[index], c.spec.ropes[index].interleaved);
}

ValueId scale_by_position(Context& c, const std::optional<PositionScale>& scale, ValueId q) {
  if (!scale) return q;
  const Shape shape = c.b.shape(q);
  const ValueId factors = position_scale(c.b, c.positions, *scale);
  return reshape(c.b, mul_column(c.b, reshape(c.b, q, Shape{shape[0], shape[1] * shape[2]}), factors), shape);
}

ValueId clipped(Context& c, ValueId x, double clip) {
  return clip > 0 ? activation(c.b, x, ActivationKind::clamp, -clip, clip) : x;
}

// out * gate, [tokens, heads * dim].
ValueId gated(Context& c, GateKind kind, ValueId out, ValueId gate, int64_t heads) {
  const ValueId factor =
      activation(c.b, gate, kind == GateKind::sigmoid ? ActivationKind::sigmoid : ActivationKind::softplus);
  const Shape shape = c.b.shape(out);
  if (c.b.shape(factor)[1] == shape[1]) return mul(c.b, out, factor);
  const ValueId by_head = reshape(c.b, out, Shape{shape[0], heads, shape[1] / heads});
  return reshape(c.b, mul_column(c.b, by_head, factor), shape);
}

// The parts of a fused projection, each [tokens, heads * dim].
Heads split_fused(Context& c, const AttentionSpec& a, ValueId x) {
  const ValueId fused = clipped(c, apply(c, a.qkv, x), a.qkv_clip);
  const int64_t groups = a.qkv_groups;
  const ValueId parts = reshape(c.b, fused, Shape{c.tokens(), groups, a.qkv.out / groups});
  Heads out;
  int64_t begin = 0;
  for (char part : a.qkv_order) {
    const int64_t width = part == 'q'   ? a.heads * a.head_dim
                          : part == 'k' ? a.kv_heads * a.head_dim
                                        : a.kv_heads * a.v_head_dim;
    const ValueId cut = slice_columns(c.b, parts, begin, width / groups);
    (part == 'q' ? out.q : part == 'k' ? out.k : out.v) = reshape(c.b, cut, Shape{c.tokens(), width});
    begin += width / groups;
  }
  return out;
}

Heads project(Context& c, const AttentionSpec& a, ValueId x, ValueId& gate) {
  if (a.qkv.present()) return split_fused(c, a, x);
  Heads out;
  out.q = clipped(c, apply(c, a.q, x), a.qkv_clip);
  if (a.gate_in_q) {
    const ValueId both = reshape(c.b, out.q, Shape{c.tokens(), a.heads, 2 * a.head_dim});
    const Shape flat{c.tokens(), a.heads * a.head_dim};
    gate = reshape(c.b, slice_columns(c.b, both, a.head_dim, a.head_dim), flat);
    out.q = reshape(c.b, slice_columns(c.b, both, 0, a.head_dim), flat);
  }
  out.k = clipped(c, apply(c, a.k, x), a.qkv_clip);
  out.v = a.v_is_k ? out.k : clipped(c, apply(c, a.v, x), a.qkv_clip);
  return out;
}

// A norm over each head, or over the whole width where it is as wide.
ValueId norm_heads(Context& c, const NormSpec& norm, ValueId x) {
  if (norm.kind == NormKind::none) return x;
  const Shape shape = c.b.shape(x);
  if (norm.width == shape[2]) return apply(c, norm, x);
  return reshape(c.b, apply(c, norm, reshape(c.b, x, Shape{shape[0], shape[1] * shape[2]})), shape);
}

struct ApplyMixer {
  Context& c;
  int32_t layer;
  ValueId x;

  ValueId operator()(const std::monostate&) const { CHECK(false, "a block without a mixer"); }

  ValueId operator()(const AttentionSpec& a) const {
    ValueId gate;
    Heads h = project(c, a, x, gate);
    h.q = reshape(c.b, h.q, Shape{c.tokens(), a.heads, a.head_dim});
    h.k = reshape(c.b, h.k, Shape{c.tokens(), a.kv_heads, a.head_dim});
    h.v = reshape(c.b, h.v, Shape{c.tokens(), a.kv_heads, a.v_head_dim});
    const auto norms = [&] {
      h.q = norm_heads(c, a.q_norm, h.q);
      h.k = norm_heads(c, a.k_norm, h.k);
    };
    if (!a.norm_after_rope) norms();
    h.v = times(c, norm_heads(c, a.v_norm, h.v), a.v_scale);
    c.b.set_name(fmt::format("layer {} attention", layer));
    h.q = rotate(c, a.rope, h.q);
    h.k = rotate(c, a.rope, h.k);
    if (a.norm_after_rope) norms();
    h.q = scale_by_position(c, a.q_scale, h.q);
    ValueId out = reshape(c.b, attend(c, a.attend, layer, h), Shape{c.tokens(), a.heads * a.v_head_dim});
    if (a.gate.present()) gate = apply(c, a.gate, x);
    if (a.gate_kind != GateKind::none) out = gated(c, a.gate_kind, out, gate, a.heads);
    return apply(c, a.o, apply(c, a.out_norm, out));
  }

  ValueId operator()(const LatentAttentionSpec& a) const {
    const int64_t qk_dim = a.nope_dim + a.rope_dim, latent = a.kv_b.in;
    ValueId q = a.q_a.present()
                    ? apply(c, a.q_b, times(c, apply(c, a.q_a_norm, apply(c, a.q_a, x)), a.q_latent_scale))
                    : apply(c, a.q, x);
    q = reshape(c.b, q, Shape{c.tokens(), a.heads, qk_dim});
    const ValueId down = apply(c, a.kv_a, x);
    const ValueId compressed = slice_columns(c.b, down, 0, latent);
    ValueId k_rope = apply(c, a.k_rope_norm, slice_columns(c.b, down, latent, a.rope_dim));
    const ValueId kv = apply(c, a.kv_b, times(c, apply(c, a.kv_a_norm, compressed), a.kv_latent_scale));
    const ValueId by_head = reshape(c.b, kv, Shape{c.tokens(), a.heads, a.nope_dim + a.v_head_dim});
    c.b.set_name(fmt::format("layer {} attention", layer));
    k_rope = rotate(c, a.rope, reshape(c.b, k_rope, Shape{c.tokens(), 1, a.rope_dim}));
    const ValueId q_rope = rotate(c, a.rope, slice_columns(c.b, q, a.nope_dim, a.rope_dim));
    const ValueId shared = repeat_columns(c.b, reshape(c.b, k_rope, Shape{c.tokens(), a.rope_dim}), a.heads);
    Heads h;
    h.q = concat_columns(c.b, {slice_columns(c.b, q, 0, a.nope_dim), q_rope});
    h.q = scale_by_position(c, a.q_scale, h.q);
    h.k = concat_columns(c.b, {slice_columns(c.b, by_head, 0, a.nope_dim),
                               reshape(c.b, shared, Shape{c.tokens(), a.heads, a.rope_dim})});
    h.v = slice_columns(c.b, by_head, a.nope_dim, a.v_head_dim);
    ValueId out = reshape(c.b, attend(c, a.attend, layer, h), Shape{c.tokens(), a.heads * a.v_head_dim});
    if (a.gate_kind != GateKind::none) out = gated(c, a.gate_kind, out, apply(c, a.gate, x), a.heads);
    return apply(c, a.o, out);
  }
};

}  // namespace

ValueId apply_mixer(ForwardContext& c, const MixerSpec& spec, int32_t layer, ValueId x) {
  return std::visit(ApplyMixer{c, layer, x}, spec);
}

}  // namespace tenon
