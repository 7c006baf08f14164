// Builds attention with learned relative positions, and the short convolutions around it.
#include <fmt/format.h>

#include <cmath>

#include "models/attend.h"
#include "ops/activation.h"
#include "ops/add.h"
#include "ops/broadcast.h"
#include "ops/columns.h"
#include "ops/matmul.h"
#include "ops/position_scale.h"
#include "ops/reshape.h"
#include "ops/scale.h"

namespace tenon {
namespace {

using Context = ForwardContext;

// Sum over distances of the token at that distance times the weights of the channel and of the token's head.
ValueId convolve_by_token(Context& c, const ResidualConvSpec& spec, int32_t layer, ValueId x,
                          ValueId by_token_x, const std::string& part) {
  const int64_t tokens = c.tokens(), channels = spec.conv.channels, taps = spec.conv.taps;
  const ValueId fixed =
      reshape(c.b, weight_vector(c, spec.conv.path + ".static_weight", Shape{taps, channels}),
              Shape{1, taps * channels});
  const ValueId own = reshape(c.b, apply(c, spec.by_token, by_token_x), Shape{tokens, spec.heads, taps});
  ValueId sum;
  for (int64_t by = 0; by < taps; ++by) {
    const ValueId before = delayed(c, layer, fmt::format("{}_{}", part, by), by, x);
    const ValueId row = reshape(c.b, slice_columns(c.b, fixed, by * channels, channels), Shape{channels});
    const ValueId by_head = reshape(c.b, before, Shape{tokens, spec.heads, channels / spec.heads});
    const ValueId moved = mul_column(c.b, by_head, slice_columns(c.b, own, by, 1));
    const ValueId term = add(c.b, mul_row(c.b, before, row), reshape(c.b, moved, Shape{tokens, channels}));
    sum = sum.valid() ? add(c.b, sum, term) : term;
  }
  return sum;
}

// 1 + rate * log(max((position + 1) / from, 1)) of each token, f32 [tokens].
ValueId log_factors(Context& c, const RelativeAttentionSpec& a) {
  const double constant = 1 - a.log_rate * std::log(static_cast<double>(a.log_from));
  const PositionScale rule{.constant = constant, .beta = a.log_rate, .offset = 0, .shift = 1};
  return activation(c.b, position_scale(c.b, c.positions, rule), ActivationKind::clamp, 1, 1e30);
}

ValueId times_log_factors(Context& c, const RelativeAttentionSpec& a, ValueId heads) {
  if (a.log_from == 0) return heads;
  const Shape shape = c.b.shape(heads);
  const ValueId rows = reshape(c.b, heads, Shape{shape[0], shape[1] * shape[2]});
  return reshape(c.b, mul_column(c.b, rows, log_factors(c, a)), shape);
}

// What each token adds to scores by distance, [tokens, heads, extent].
ValueId relative_scores(Context& c, const RelativeAttentionSpec& a, ValueId x) {
  const Shape by_head{c.tokens(), a.heads, a.states};
  ValueId states = apply(c, a.r_norm, reshape(c.b, apply(c, a.r, x), by_head));
  states = reshape(c.b, times_log_factors(c, a, states), Shape{c.tokens() * a.heads, a.states});
  const ValueId profiles = weight_vector(c, a.profiles, Shape{a.states, a.extent});
  const ValueId scores = matmul(c.b, states, profiles, {.out_dtype = c.b.dtype(states)});
  return reshape(c.b, scores, Shape{c.tokens(), a.heads, a.extent});
}

}  // namespace

ValueId apply(ForwardContext& c, const ResidualConvSpec& spec, int32_t layer, ValueId x, ValueId by_token_x,
              const std::string& part) {
  const ValueId y = spec.by_token.present() ? convolve_by_token(c, spec, layer, x, by_token_x, part)
                                            : convolve(c, spec.conv, layer, x, part.c_str());
  return times(c, add(c.b, y, x), spec.scale);
}

ValueId apply_relative_attention(ForwardContext& c, const RelativeAttentionSpec& a, int32_t layer,
                                 const AttentionInputs& x) {
  const auto heads_of = [&](ValueId rows, int64_t heads) {
    return reshape(c.b, rows, Shape{c.tokens(), heads, a.head_dim});
  };
  const ValueId q = times_log_factors(c, a, apply(c, a.q_norm, heads_of(apply(c, a.q, x.q), a.heads)));
  const ValueId k_rows = apply(c, a.k_conv, layer, apply(c, a.k, x.k), x.k, "k_conv");
  const ValueId v_rows = apply(c, a.v_conv, layer, apply(c, a.v, x.v), x.v, "v_conv");
  const ValueId k = apply(c, a.k_norm, heads_of(k_rows, a.kv_heads));
  const ValueId v = apply(c, a.v_norm, heads_of(v_rows, a.kv_heads));
  TokenBiases biases;
  biases.relative = relative_scores(c, a, x.q);
  if (a.sinks.present()) biases.sinks = as_f32(c, apply(c, a.sinks, x.q));
  ValueId out = attend(c, a.attend, layer, q, k, v, biases);
  out = reshape(c.b, out, Shape{c.tokens(), a.heads * a.head_dim});
  if (a.gate.present()) out = gated(c, GateKind::sigmoid, out, apply(c, a.gate, x.q), a.heads);
  return apply(c, a.o, out);
}

}  // namespace tenon
