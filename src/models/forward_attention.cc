// Builds the mixers of a forward Program: softmax attention.
#include <fmt/format.h>

#include "models/attend.h"
#include "models/cache_layout.h"
#include "models/layers.h"
#include "ops/activation.h"
#include "ops/add.h"
#include "ops/attention.h"
#include "ops/biased_attention.h"
#include "ops/broadcast.h"
#include "ops/cache_write.h"
#include "ops/columns.h"
#include "ops/grouped_matmul.h"
#include "ops/mul.h"
#include "ops/normalise.h"
#include "ops/paged_attention.h"
#include "ops/permute.h"
#include "ops/reshape.h"
#include "ops/rope.h"
#include "ops/scale.h"

namespace tenon {
namespace {

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

AttentionBiases attention_biases(ForwardContext& c, const AttendSpec& spec, int32_t layer, int64_t heads) {
  AttentionBiases biases;
  if (!spec.sinks.empty()) biases.sinks = weight_vector(c, spec.sinks, Shape{heads});
  if (spec.alibi != Alibi::none) {
    biases.slopes = c.b.add_constant(fmt::format("alibi.{}", layer), Shape{heads}, spec.slopes);
  }
  return biases;
}

}  // namespace

const CachePlaces& places_of(const ForwardContext& c, int32_t layer) {
  return c.places.at(ring_pages(c.spec, *c.options.cache, layer));
}

ValueId cached(ForwardContext& c, const char* part, int32_t layer, ValueId rows) {
  const CacheOptions& cache = *c.options.cache;
  const int64_t ring = ring_pages(c.spec, cache, layer);
  const int64_t pages = ring > 0 ? ring * cache.streams : cache.pages;
  const Shape& shape = c.b.shape(rows);
  const Type type{cache.dtype, Shape{pages, cache.page_tokens, shape[1], shape[2]}};
  const std::string name = fmt::format("cache.{}.{}{}", layer, ring > 0 ? kRingPart : "", part);
  const ValueId state = c.b.add_static(Role::cache, name, type);
  return cache_write(c.b, state, rows, places_of(c, layer).slots);
}

ValueId attend_kept(ForwardContext& c, const AttendSpec& spec, int32_t layer, ValueId q, const Kept& kept,
                    const TokenBiases& by_token) {
  const bool biased = !spec.sinks.empty() || spec.alibi != Alibi::none || spec.chunk > 0 ||
                      by_token.sinks.valid() || by_token.relative.valid();
  const BiasedAttentionOptions options = biased_options(spec);
  AttentionBiases biases = attention_biases(c, spec, layer, c.b.shape(q)[1]);
  if (by_token.sinks.valid()) biases.sinks = by_token.sinks;
  biases.relative = by_token.relative;
  c.b.set_name(fmt::format("layer {} attention", layer));
  if (c.options.cache) {
    const ValueId page_table = places_of(c, kept.of).page_table;
    const PagedAttentionInputs inputs{q, kept.k, kept.v, page_table, c.stream, c.positions};
    return biased ? biased_paged_attention(c.b, inputs, biases, options)
                  : paged_attention(c.b, inputs, options);
  }
  return biased ? biased_attention(c.b, q, kept.k, kept.v, c.sequence_begin, biases, options).out
                : attention(c.b, q, kept.k, kept.v, c.sequence_begin, options).out;
}

ValueId scale_by_position(ForwardContext& c, const std::optional<PositionScale>& scale, ValueId q) {
  if (!scale) return q;
  const Shape shape = c.b.shape(q);
  const ValueId factors = position_scale(c.b, c.positions, *scale);
  return reshape(c.b, mul_column(c.b, reshape(c.b, q, Shape{shape[0], shape[1] * shape[2]}), factors), shape);
}

ValueId gated(ForwardContext& c, GateKind kind, ValueId out, ValueId gate, int64_t heads) {
  const ValueId factor =
      activation(c.b, gate, kind == GateKind::sigmoid ? ActivationKind::sigmoid : ActivationKind::softplus);
  const Shape shape = c.b.shape(out);
  if (c.b.shape(factor)[1] == shape[1]) return mul(c.b, out, factor);
  const ValueId by_head = reshape(c.b, out, Shape{shape[0], heads, shape[1] / heads});
  return reshape(c.b, mul_column(c.b, by_head, factor), shape);
}

namespace {

ValueId clipped(ForwardContext& c, ValueId x, double clip) {
  return clip > 0 ? activation(c.b, x, ActivationKind::clamp, -clip, clip) : x;
}

// The parts of a fused projection, each [tokens, heads * dim].
Heads split_fused(ForwardContext& c, const AttentionSpec& a, ValueId x) {
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

Heads project(ForwardContext& c, const AttentionSpec& a, ValueId x, ValueId& gate) {
  if (a.qkv.present()) return split_fused(c, a, x);
  Heads out;
  out.q = clipped(c, apply(c, a.q, x), a.qkv_clip);
  if (a.gate_in_q) {
    const ValueId both = reshape(c.b, out.q, Shape{c.tokens(), a.heads, 2 * a.head_dim});
    const Shape flat{c.tokens(), a.heads * a.head_dim};
    gate = reshape(c.b, slice_columns(c.b, both, a.head_dim, a.head_dim), flat);
    out.q = reshape(c.b, slice_columns(c.b, both, 0, a.head_dim), flat);
  }
  if (a.kv_from >= 0) return out;
  if (a.kv.present()) {
    const ValueId both = apply(c, a.kv, x);
    out.k = slice_columns(c.b, both, 0, a.kv.out / 2);
    out.v = slice_columns(c.b, both, a.kv.out / 2, a.kv.out / 2);
    return out;
  }
  out.k = clipped(c, apply(c, a.k, x), a.qkv_clip);
  out.v = a.v_is_k ? out.k : clipped(c, apply(c, a.v, x), a.qkv_clip);
  return out;
}

// A norm over each head, or over the whole width where it is as wide.
ValueId norm_heads(ForwardContext& c, const NormSpec& norm, ValueId x) {
  if (norm.kind == NormKind::none) return x;
  const Shape shape = c.b.shape(x);
  if (norm.width == shape[2]) return apply(c, norm, x);
  return reshape(c.b, apply(c, norm, reshape(c.b, x, Shape{shape[0], shape[1] * shape[2]})), shape);
}

struct ApplyMixer {
  ForwardContext& c;
  int32_t layer;
  ValueId x;

  ValueId operator()(const std::monostate&) const { CHECK(false, "a block without a mixer"); }

  ValueId operator()(const AttentionSpec& a) const {
    ValueId gate;
    Heads h = project(c, a, x, gate);
    h.q = reshape(c.b, h.q, Shape{c.tokens(), a.heads, a.head_dim});
    if (!a.norm_after_rope) h.q = norm_heads(c, a.q_norm, h.q);
    c.b.set_name(fmt::format("layer {} attention", layer));
    h.q = rotate(c, a.rope, h.q);
    if (a.norm_after_rope) h.q = norm_heads(c, a.q_norm, h.q);
    if (!a.q_channels.weight.empty()) {
      const ValueId flat = reshape(c.b, h.q, Shape{c.tokens(), a.heads * a.head_dim});
      h.q = reshape(c.b, apply(c, a.q_channels, flat), c.b.shape(h.q));
    }
    h.q = scale_by_position(c, a.q_scale, h.q);
    ValueId out = attend_by_kind(a, h);
    if (a.differential) out = difference(a, out);
    out = reshape(c.b, out, Shape{c.tokens(), c.b.shape(out).elements() / c.tokens()});
    if (a.gate.present()) gate = apply(c, a.gate, x);
    if (!a.gate_bias.empty()) {
      const ValueId by_head = reshape(c.b, weight_vector(c, a.gate_bias, Shape{a.heads}), Shape{a.heads, 1});
      const ValueId row = repeat_columns(c.b, by_head, a.gate.out / a.heads);
      gate = add_row(c.b, gate, reshape(c.b, row, Shape{a.gate.out}));
    }
    if (a.gate_kind != GateKind::none) out = gated(c, a.gate_kind, out, gate, a.heads);
    return apply(c, a.o, apply(c, a.out_norm, out));
  }

  ValueId attend_by_kind(const AttentionSpec& a, const Heads& h) const {
    if (a.kv_from >= 0) return attend_to_layer(a, h.q);
    const ValueId k = keys(a, h.k), v = values(a, h.v);
    if (a.value_mask) return attend_masked(c, a, layer, h.q, k, v);
    if (a.indexer)
      return attend_chosen(c, a.attend, layer, h.q, k, v, choose_blocks(c, *a.indexer, layer, x));
    return attend(c, a.attend, layer, h.q, k, v);
  }

  ValueId keys(const AttentionSpec& a, ValueId k) const {
    k = reshape(c.b, k, Shape{c.tokens(), a.kv_heads, a.head_dim});
    if (!a.norm_after_rope) k = norm_heads(c, a.k_norm, k);
    c.b.set_name(fmt::format("layer {} attention", layer));
    k = rotate(c, a.rope, k);
    return a.norm_after_rope ? norm_heads(c, a.k_norm, k) : k;
  }

  ValueId values(const AttentionSpec& a, ValueId v) const {
    v = reshape(c.b, v, Shape{c.tokens(), a.kv_heads, a.v_head_dim});
    v = times(c, norm_heads(c, a.v_norm, v), a.v_scale);
    if (!a.differential) return v;
    // Every key head has both halves of the values, side by side.
    const int64_t half = a.kv_heads / 2, width = half * a.v_head_dim;
    const ValueId rows = reshape(c.b, v, Shape{c.tokens(), 2 * width});
    const auto part = [&](int64_t i) {
      return reshape(c.b, slice_columns(c.b, rows, i * width, width), Shape{c.tokens(), half, a.v_head_dim});
    };
    const ValueId pairs = reshape(c.b, concat_columns(c.b, {part(0), part(1)}), Shape{c.tokens(), 2 * width});
    return reshape(c.b, repeat_columns(c.b, pairs, 2), Shape{c.tokens(), a.kv_heads, 2 * a.v_head_dim});
  }

  ValueId attend_to_layer(const AttentionSpec& a, ValueId q) const {
    const auto& [k, v] = c.kv[static_cast<size_t>(a.kv_from)];
    return attend_kept(c, a.attend, layer, q, {k, v, a.kv_from});
  }

  // First half of the heads minus lambda times the second, normed by pair.
  ValueId difference(const AttentionSpec& a, ValueId out) const {
    const DifferentialSpec& d = *a.differential;
    const auto term = [&](const char* q, const char* k) {
      const Shape row{1, a.head_dim};
      const ValueId left = reshape(c.b, weight_vector(c, d.path + q, Shape{a.head_dim}), row);
      const ValueId right = reshape(c.b, weight_vector(c, d.path + k, Shape{a.head_dim}), row);
      return activation(c.b, row_dot(c.b, left, right, DType::f32, Shape{1}), ActivationKind::exp);
    };
    const ValueId init =
        c.b.add_constant(fmt::format("lambda_init.{}", layer), Shape{1}, {static_cast<float>(d.init)});
    const ValueId lambda =
        add(c.b, add(c.b, term(".lambda_q1", ".lambda_k1"), scale(c.b, term(".lambda_q2", ".lambda_k2"), -1)),
            init);
    const int64_t width = a.heads * a.v_head_dim;
    const ValueId rows = reshape(c.b, out, Shape{c.tokens(), 2 * width});
    const ValueId second = times_scalar(c, slice_columns(c.b, rows, width, width), lambda);
    const ValueId mixed = add(c.b, slice_columns(c.b, rows, 0, width), scale(c.b, second, -1));
    const ValueId pairs = reshape(c.b, mixed, Shape{c.tokens(), a.heads / 2, 2 * a.v_head_dim});
    return scale(c.b, normalise(c.b, pairs, NormaliseKind::rms, d.eps), 1 - d.init);
  }

  ValueId operator()(const ShortConvSpec& spec) const { return apply_short_conv(c, spec, layer, x); }
  ValueId operator()(const DeltaSpec& spec) const { return apply_delta(c, spec, layer, x); }
  ValueId operator()(const Mamba2Spec& spec) const { return apply_mamba2(c, spec, layer, x); }
  ValueId operator()(const MambaSpec& spec) const { return apply_mamba(c, spec, layer, x); }
  ValueId operator()(const FixedDecaySpec& spec) const { return apply_fixed_decay(c, spec, layer, x); }
  ValueId operator()(const RecurrentUnitSpec& spec) const { return apply_recurrent_unit(c, spec, layer, x); }
  ValueId operator()(const TimeMixSpec& s) const { return apply_time_mix(c, s, layer, x); }
  ValueId operator()(const MatrixMemorySpec& s) const { return apply_matrix_memory(c, s, layer, x); }
  ValueId operator()(const AttentionExpertsSpec& spec) const {
    return apply_attention_experts(c, spec, layer, x);
  }
  ValueId operator()(const RelativeAttentionSpec& spec) const {
    return apply_relative_attention(c, spec, layer, {x, x, x});
  }
  ValueId operator()(const ConvolvedAttentionSpec& spec) const {
    return apply_convolved_attention(c, spec, layer, x);
  }
  ValueId operator()(const CompressedAttentionSpec& spec) const {
    return apply_compressed_attention(c, spec, layer, x);
  }
  ValueId operator()(const LatentAttentionSpec& spec) const {
    return apply_latent_attention(c, spec, layer, x);
  }
};

}  // namespace

ValueId attend(ForwardContext& c, const AttendSpec& spec, int32_t layer, ValueId q, ValueId k, ValueId v,
               const TokenBiases& biases) {
  c.b.set_name(fmt::format("layer {} attention", layer));
  if (c.options.cache) {
    k = cached(c, "k", layer, k);
    v = cached(c, "v", layer, v);
  }
  if (c.kv.size() <= static_cast<size_t>(layer)) c.kv.resize(static_cast<size_t>(layer) + 1);
  c.kv[static_cast<size_t>(layer)] = {k, v};
  return attend_kept(c, spec, layer, q, {k, v, layer}, biases);
}

ValueId apply_attention_experts(ForwardContext& c, const AttentionExpertsSpec& a, int32_t layer, ValueId x) {
  const int64_t tokens = c.tokens(), hidden = c.b.shape(x)[1], k = a.experts.top_k.k;
  const int64_t width = a.kv_heads * a.head_dim;
  const Routes routes = route(c, a.experts, x);
  const ValueId group = reshape(c.b, routes.experts, Shape{tokens * k});
  const ValueId rows = reshape(c.b, repeat_columns(c.b, x, k), Shape{tokens * k, hidden});
  const auto weight = [&](const std::string& name, int64_t out, int64_t in) {
    const ValueId stacked = weight_matrix(c, name, Shape{a.experts.experts, out, in});
    c.b.set_name(name);
    return stacked;
  };
  ValueId q = grouped_matmul(c.b, rows, weight(a.experts.up_name, width, hidden), group);
  // Heads that share keys stand together: by key head, then by expert.
  q = permute(c.b, reshape(c.b, q, Shape{tokens, k, a.kv_heads, a.head_dim}), {0, 2, 1, 3});
  q = rotate(c, a.rope, reshape(c.b, q, Shape{tokens, a.kv_heads * k, a.head_dim}));
  const ValueId kv = apply(c, a.kv, x);
  const Shape by_head{tokens, a.kv_heads, a.head_dim};
  const ValueId keys = rotate(c, a.rope, reshape(c.b, slice_columns(c.b, kv, 0, width), by_head));
  const ValueId values = reshape(c.b, slice_columns(c.b, kv, width, width), by_head);
  ValueId out = attend(c, a.attend, layer, q, keys, values);
  out = permute(c.b, reshape(c.b, out, Shape{tokens, a.kv_heads, k, a.head_dim}), {0, 2, 1, 3});
  out = reshape(c.b, out, Shape{tokens * k, width});
  out = grouped_matmul(c.b, out, weight(a.experts.down_name, hidden, width), group);
  out = mul_column(c.b, out, routes.weights);
  out = fold_columns(c.b, reshape(c.b, out, Shape{tokens, k * hidden}), k);
  return add_row(c.b, out, weight_vector(c, a.experts.output_bias, Shape{hidden}));
}

ValueId rotate(ForwardContext& c, int32_t rope_index, ValueId x) {
  if (rope_index < 0) return x;
  const size_t index = static_cast<size_t>(rope_index);
  return rope(c.b, x, c.rope_tables[index], c.spec.ropes[index].interleaved);
}

ValueId apply_mixer(ForwardContext& c, const MixerSpec& spec, int32_t layer, ValueId x) {
  return std::visit(ApplyMixer{c, layer, x}, spec);
}

}  // namespace tenon
