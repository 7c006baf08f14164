// Builds the mixers that keep a state along the sequence: short convolutions, the gated delta rule,
// state-space layers. Packed sequences begin with no state; in decoding each stream's state is a cache.
#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "models/layers.h"
#include "ops/activation.h"
#include "ops/add.h"
#include "ops/broadcast.h"
#include "ops/cast.h"
#include "ops/causal_conv.h"
#include "ops/columns.h"
#include "ops/fill.h"
#include "ops/linear_attention.h"
#include "ops/matmul.h"
#include "ops/mul.h"
#include "ops/normalise.h"
#include "ops/permute.h"
#include "ops/position_scale.h"
#include "ops/reshape.h"
#include "ops/scale.h"
#include "ops/selective_scan.h"
#include "ops/silu.h"

namespace tenon {
namespace {

using Context = ForwardContext;

int64_t streams(const Context& c) {
  return c.options.cache->streams;
}

ValueId linear_recurrence(Context& c, const LinearAttentionInputs& inputs,
                          const LinearAttentionOptions& options, int32_t layer) {
  if (!c.options.cache) return linear_attention(c.b, inputs, c.sequence_begin, options);
  const Shape &q = c.b.shape(inputs.q), &v = c.b.shape(inputs.v);
  const Shape state{streams(c), v[1], q[2], v[2]};
  return linear_attention_cached(c.b, inputs, stream_state(c, layer, "state", DType::f32, state), options);
}

// Each element of a vector [n] `times` times in a row: [n * times].
ValueId spread(Context& c, ValueId vector, int64_t times) {
  const int64_t n = c.b.shape(vector).elements();
  const ValueId wide = repeat_columns(c.b, reshape(c.b, vector, Shape{n, 1}), times);
  return reshape(c.b, wide, Shape{n * times});
}

// [tokens, heads, n] to its rows.
ValueId flat(Context& c, ValueId x) {
  return reshape(c.b, x, Shape{c.tokens(), c.b.shape(x).elements() / c.tokens()});
}

ValueId apply(Context& c, const GatedNormSpec& spec, ValueId x, ValueId gate) {
  const auto kind = spec.sigmoid ? ActivationKind::sigmoid : ActivationKind::swish;
  const ValueId open = spec.sigmoid ? activation(c.b, gate, kind) : silu(c.b, gate);
  if (spec.path.empty()) return mul(c.b, x, open);
  const Shape shape = c.b.shape(x);
  if (spec.gate_first) x = mul(c.b, x, open);
  c.b.set_name(spec.path);
  x = normalise(c.b, reshape(c.b, x, Shape{shape.elements() / spec.group, spec.group}), NormaliseKind::rms,
                spec.eps);
  const ValueId weight = weight_vector(c, spec.path + ".weight", Shape{spec.width});
  x = mul_row(c.b, reshape(c.b, x, Shape{shape.elements() / spec.width, spec.width}), weight);
  x = reshape(c.b, x, shape);
  return spec.gate_first ? x : mul(c.b, x, open);
}

// exp(A) by head, spread over `width` channels each.
ValueId rates(Context& c, const std::string& a_log, int64_t heads, int64_t width) {
  const ValueId rate = activation(c.b, weight_vector(c, a_log, Shape{heads}), ActivationKind::exp);
  return spread(c, rate, width);
}

// log decays f32 [tokens, heads, width] from their projection [tokens, heads * width].
ValueId log_decays(Context& c, const DecaySpec& spec, ValueId x, int64_t heads, int64_t width) {
  x = as_f32(c, x);
  x = add_row(c.b, x, weight_vector(c, spec.dt_bias, Shape{heads * width}));
  const ValueId rate = rates(c, spec.a_log, heads, width);
  if (spec.bound != 0) {
    x = scale(c.b, activation(c.b, mul_row(c.b, x, rate), ActivationKind::sigmoid), spec.bound);
  } else {
    x = scale(c.b, mul_row(c.b, activation(c.b, x, ActivationKind::softplus), rate), -1);
  }
  return reshape(c.b, x, Shape{c.tokens(), heads, width});
}

struct DeltaOperands {
  ValueId qkv, gate, beta, decay;  // [tokens, ...]
};

DeltaOperands project(Context& c, const DeltaSpec& s, ValueId x) {
  DeltaOperands out;
  if (s.qkvz.present()) {
    const int64_t ratio = s.heads / s.key_heads, values = ratio * s.value_dim;
    const ValueId all =
        reshape(c.b, apply(c, s.qkvz, x), Shape{c.tokens(), s.key_heads, 2 * s.key_dim + 2 * values});
    std::vector<ValueId> parts;
    int64_t at = 0;
    for (int64_t width : {s.key_dim, s.key_dim, values, values}) {
      parts.push_back(flat(c, slice_columns(c.b, all, at, width)));
      at += width;
    }
    out.qkv = concat_columns(c.b, {parts[0], parts[1], parts[2]});
    out.gate = parts[3];
    const ValueId ba = reshape(c.b, apply(c, s.ba, x), Shape{c.tokens(), s.key_heads, 2 * ratio});
    out.beta = flat(c, slice_columns(c.b, ba, 0, ratio));
    out.decay = flat(c, slice_columns(c.b, ba, ratio, ratio));
    return out;
  }
  out.qkv = s.qkv.present() ? apply(c, s.qkv, x)
                            : concat_columns(c.b, {apply(c, s.q, x), apply(c, s.k, x), apply(c, s.v, x)});
  out.gate = apply(c, s.gate, s.gate_a.present() ? apply(c, s.gate_a, x) : x);
  out.beta = apply(c, s.beta, x);
  out.decay = apply(c, s.decay, s.decay_a.present() ? apply(c, s.decay_a, x) : x);
  return out;
}

}  // namespace

StreamInputs stream_state(ForwardContext& c, int32_t layer, const char* part, DType dtype, Shape shape) {
  const std::string name = fmt::format("cache.{}.{}", layer, part);
  return {c.b.add_static(Role::cache, name, {dtype, shape}), c.stream, c.positions};
}

ValueId convolve(ForwardContext& c, const ConvSpec& spec, int32_t layer, ValueId x, const char* part,
                 int64_t dilation) {
  const ValueId stored = weight_vector(c, spec.path + ".weight", Shape{spec.channels, 1, spec.taps});
  const ValueId weight = reshape(c.b, stored, Shape{spec.channels, spec.taps});
  c.b.set_name(spec.path);
  if (c.options.cache) {
    const Shape state{streams(c), (spec.taps - 1) * dilation, spec.channels};
    x = causal_conv_cached(c.b, x, weight, stream_state(c, layer, part, c.b.dtype(x), state), dilation);
  } else {
    x = causal_conv(c.b, x, weight, c.sequence_begin, dilation);
  }
  return spec.bias ? add_row(c.b, x, weight_vector(c, spec.path + ".bias", Shape{spec.channels})) : x;
}

ValueId apply_short_conv(ForwardContext& c, const ShortConvSpec& spec, int32_t layer, ValueId x) {
  const ValueId all = apply(c, spec.in, x);
  const int64_t width = spec.conv.channels;
  const ValueId before = slice_columns(c.b, all, 0, width), after = slice_columns(c.b, all, width, width);
  x = mul(c.b, before, slice_columns(c.b, all, 2 * width, width));
  return apply(c, spec.out, mul(c.b, after, convolve(c, spec.conv, layer, x)));
}

ValueId apply_delta(ForwardContext& c, const DeltaSpec& s, int32_t layer, ValueId x) {
  const DeltaOperands in = project(c, s, x);
  const ValueId qkv = silu(c.b, convolve(c, s.conv, layer, in.qkv));
  const int64_t keys = s.key_heads * s.key_dim, values = s.heads * s.value_dim;
  const auto unit_keys = [&](int64_t begin) {
    const ValueId rows = slice_columns(c.b, qkv, begin, keys);
    return normalise(c.b, reshape(c.b, rows, Shape{c.tokens(), s.key_heads, s.key_dim}), NormaliseKind::l2,
                     1e-6);
  };
  LinearAttentionInputs inputs;
  inputs.q = unit_keys(0);
  inputs.k = unit_keys(keys);
  inputs.v = reshape(c.b, slice_columns(c.b, qkv, 2 * keys, values), Shape{c.tokens(), s.heads, s.value_dim});
  inputs.log_decay = log_decays(c, s.decay_kind, in.decay, s.heads, s.by_channel ? s.key_dim : 1);
  inputs.beta = times(c, activation(c.b, as_f32(c, in.beta), ActivationKind::sigmoid), s.beta_scale);
  c.b.set_name(fmt::format("layer {} delta rule", layer));
  const double scale = 1 / std::sqrt(static_cast<double>(s.key_dim));
  const ValueId out = linear_recurrence(c, inputs, {.scale = scale, .delta = true}, layer);
  return apply(c, s.out, apply(c, s.norm, flat(c, out), in.gate));
}

ValueId apply_mamba2(ForwardContext& c, const Mamba2Spec& s, int32_t layer, ValueId x) {
  ValueId all = apply(c, s.in, x);
  const int64_t width = s.width(), states = s.groups * s.state;
  if (!s.in_scales.empty()) {
    std::vector<float> row;
    const int64_t parts[] = {width, width, states, states, s.heads};
    for (size_t i = 0; i < std::size(parts); ++i)
      row.insert(row.end(), static_cast<size_t>(parts[i]), s.in_scales[i]);
    all = mul_row(c.b, all, c.b.add_constant(fmt::format("in_scales.{}", layer), Shape{s.in.out}, row));
  }
  const ValueId gate = slice_columns(c.b, all, 0, width);
  const ValueId mixed =
      silu(c.b, convolve(c, s.conv, layer, slice_columns(c.b, all, width, width + 2 * states)));
  ValueId dt = as_f32(c, slice_columns(c.b, all, 2 * width + 2 * states, s.heads));
  dt = activation(c.b, add_row(c.b, dt, weight_vector(c, s.dt_bias, Shape{s.heads})),
                  ActivationKind::softplus);
  if (s.dt_min > 0) dt = activation(c.b, dt, ActivationKind::clamp, s.dt_min, 1e30);
  const ValueId values = slice_columns(c.b, mixed, 0, width);
  const Shape by_group{c.tokens(), s.groups, s.state};
  LinearAttentionInputs inputs;
  inputs.k = reshape(c.b, slice_columns(c.b, mixed, width, states), by_group);
  inputs.q = reshape(c.b, slice_columns(c.b, mixed, width + states, states), by_group);
  inputs.v = reshape(c.b, values, Shape{c.tokens(), s.heads, s.head_dim});
  inputs.beta = dt;
  const ValueId decay = scale(c.b, mul_row(c.b, dt, rates(c, s.a_log, s.heads, 1)), -1);
  inputs.log_decay = reshape(c.b, decay, Shape{c.tokens(), s.heads, 1});
  c.b.set_name(fmt::format("layer {} state space", layer));
  const ValueId out = flat(c, linear_recurrence(c, inputs, {}, layer));
  const ValueId direct = spread(c, weight_vector(c, s.d, Shape{s.heads}), s.head_dim);
  return apply(c, s.out, apply(c, s.norm, add(c.b, out, mul_row(c.b, values, direct)), gate));
}

ValueId apply_mamba(ForwardContext& c, const MambaSpec& s, int32_t layer, ValueId x) {
  ValueId all = apply(c, s.in, x);
  if (s.interleaved) {
    const ValueId pairs = reshape(c.b, all, Shape{c.tokens(), s.channels, 2});
    all = reshape(c.b, permute(c.b, pairs, {0, 2, 1}), Shape{c.tokens(), 2 * s.channels});
  }
  const ValueId gate = slice_columns(c.b, all, s.channels, s.channels);
  const ValueId mixed = silu(c.b, convolve(c, s.conv, layer, slice_columns(c.b, all, 0, s.channels)));
  const int64_t width = s.channels / s.heads;
  std::vector<ValueId> steps, before, after;
  for (int64_t head = 0; head < s.heads; ++head) {
    const auto of_head = [&](LinearSpec linear) {
      if (s.heads > 1) linear.path += fmt::format(".{}", head);
      return linear;
    };
    const ValueId part = s.heads == 1 ? mixed : slice_columns(c.b, mixed, head * width, width);
    const ValueId all_three = apply(c, of_head(s.x), part);
    const auto take = [&](int64_t at, int64_t count, const NormSpec& norm) {
      return apply(c, norm, slice_columns(c.b, all_three, at, count));
    };
    steps.push_back(apply(c, of_head(s.dt), take(0, s.dt_rank, s.dt_norm)));
    before.push_back(take(s.dt_rank, s.state, s.b_norm));
    after.push_back(take(s.dt_rank + s.state, s.state, s.c_norm));
  }
  const auto joined = [&](const std::vector<ValueId>& parts) {
    return parts.size() == 1 ? parts[0] : concat_columns(c.b, parts);
  };
  SelectiveScanInputs inputs;
  inputs.x = mixed;
  inputs.dt = activation(c.b, as_f32(c, joined(steps)), ActivationKind::softplus);
  const ValueId a = weight_vector(c, s.a_log, Shape{s.channels, s.state});
  inputs.a = scale(c.b, activation(c.b, a, ActivationKind::exp), -1);
  const Shape by_head{c.tokens(), s.heads, s.state};
  inputs.b = reshape(c.b, joined(before), by_head);
  inputs.c = reshape(c.b, joined(after), by_head);
  c.b.set_name(fmt::format("layer {} selective scan", layer));
  const Shape state{c.options.cache ? streams(c) : 1, s.channels, s.state};
  const ValueId out =
      c.options.cache ? selective_scan_cached(c.b, inputs, stream_state(c, layer, "state", DType::f32, state))
                      : selective_scan(c.b, inputs, c.sequence_begin);
  const ValueId direct = mul_row(c.b, mixed, weight_vector(c, s.d, Shape{s.channels}));
  return apply(c, s.out, mul(c.b, add(c.b, out, direct), silu(c.b, gate)));
}

ValueId apply_fixed_decay(ForwardContext& c, const FixedDecaySpec& s, int32_t layer, ValueId x) {
  const int64_t dim = s.head_dim;
  const ValueId qkv = reshape(c.b, silu(c.b, apply(c, s.qkv, x)), Shape{c.tokens(), s.heads, 3 * dim});
  LinearAttentionInputs inputs;
  inputs.q = slice_columns(c.b, qkv, 0, dim);
  inputs.k = slice_columns(c.b, qkv, dim, dim);
  inputs.v = slice_columns(c.b, qkv, 2 * dim, dim);
  const ValueId decays =
      c.b.add_constant(fmt::format("log_decays.{}", layer), Shape{1, s.heads}, s.log_decays);
  inputs.log_decay = reshape(c.b, repeat_columns(c.b, decays, c.tokens()), Shape{c.tokens(), s.heads, 1});
  c.b.set_name(fmt::format("layer {} linear attention", layer));
  const ValueId out = apply(c, s.norm, flat(c, linear_recurrence(c, inputs, {}, layer)));
  const ValueId gate = activation(c.b, apply(c, s.gate, x), ActivationKind::sigmoid);
  return apply(c, s.out, mul(c.b, out, gate));
}

namespace {

// sigmoid of a block-diagonal projection of x [tokens, width], f32.
ValueId block_gate(Context& c, const RecurrentUnitSpec& s, const char* name, ValueId x) {
  const int64_t width = s.width / s.heads;
  const ValueId weight = weight_matrix(c, s.path + "." + name + "_weight", Shape{s.heads, width, width});
  const ValueId bias = weight_vector(c, s.path + "." + name + "_bias", Shape{s.heads, width});
  std::vector<ValueId> parts;
  for (int64_t h = 0; h < s.heads; ++h) {
    const ValueId rows = reshape(c.b, weight, Shape{1, s.heads * width * width});
    const ValueId block =
        reshape(c.b, slice_columns(c.b, rows, h * width * width, width * width), Shape{width, width});
    parts.push_back(matmul(c.b, slice_columns(c.b, x, h * width, width), block, {.out_dtype = DType::f32}));
  }
  const ValueId sum = parts.size() == 1 ? parts[0] : concat_columns(c.b, parts);
  return activation(c.b, add_row(c.b, sum, reshape(c.b, bias, Shape{s.width})), ActivationKind::sigmoid);
}

}  // namespace

ValueId apply_recurrent_unit(ForwardContext& c, const RecurrentUnitSpec& s, int32_t layer, ValueId x) {
  MlpSpec act;
  act.activation = s.activation;
  const ValueId open = activated(c, act, apply(c, s.in_y, x));
  const ValueId mixed = convolve(c, s.conv, layer, apply(c, s.in_x, x));
  c.b.set_name(fmt::format("layer {} recurrent unit", layer));
  const ValueId in_gate = block_gate(c, s, "input_gate", mixed),
                rate = block_gate(c, s, "recurrent_gate", mixed);
  const ValueId p = activation(c.b, weight_vector(c, s.path + ".recurrent_param", Shape{s.width}),
                               ActivationKind::softplus);
  ValueId log_decay = scale(c.b, mul_row(c.b, rate, p), -8);
  // The first token of a sequence decays all: log(1e-30 + 0) is far below zero, that of a later position is
  // not.
  const ValueId first =
      activation(c.b, position_scale(c.b, c.positions, {.constant = 0, .beta = -1, .offset = 1e-30}),
                 ActivationKind::relu);
  const ValueId column = reshape(c.b, first, Shape{c.tokens(), 1});
  log_decay = add(c.b, log_decay, scale(c.b, repeat_columns(c.b, column, s.width), -1));
  const ValueId complement = activation(c.b, log_decay, ActivationKind::complement);
  const ValueId value = mul(c.b, mul(c.b, as_f32(c, mixed), in_gate), complement);
  const Shape by_channel{c.tokens(), s.width, 1};
  LinearAttentionInputs inputs;
  const ValueId one = c.b.add_constant("one", Shape{1}, {1.0f});
  inputs.q = inputs.k = fill(c.b, one, by_channel);
  inputs.v = reshape(c.b, value, by_channel);
  inputs.log_decay = reshape(c.b, log_decay, by_channel);
  ValueId out = flat(c, linear_recurrence(c, inputs, {}, layer));
  if (c.b.dtype(out) != c.options.compute) out = cast(c.b, out, c.options.compute);
  return apply(c, s.out, mul(c.b, out, open));
}

}  // namespace tenon
