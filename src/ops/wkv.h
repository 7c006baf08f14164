// The WKV weighted sum of values with a decay by channel (Peng et al. 2023, eq. 16), over packed sequences.
// For a channel with decay w < 0 and bonus u, where i runs over the tokens of t's sequence before t,
//   out[t] = (sum_i e^((t - 1 - i) w + k[i]) v[i] + e^(u + k[t]) v[t]) / (the same sums without v).
// It is computed from a state of three numbers: both sums over the tokens before, times e^-m, and m, the
// largest exponent in them, so that no exponential is above 1; a state whose second sum is 0 is empty.
// k and v [tokens, channels] of one dtype, w and u f32 [channels], sequence_begin [tokens] i32. Outputs: out
// in v's dtype, and states f32 [ceil(tokens / chunk), 3, channels], the state before each chunk's first
// token, from which the gradient computes the others again. A gradient flows from out alone.
//
// wkv_grad: k, v, w, u, sequence_begin, states, dout to dk, dv, dw, du. wkv_cached, for new tokens of
// streams: k, v, w, u, state f32 [streams, 3, channels], stream and positions [tokens] i32; outputs out, and
// the state updated in place. A token at position 0 begins anew; one whose stream is -1 gives zeros.
#pragma once

#include "ir/builder.h"
#include "ops/causal_conv.h"

namespace tenon {

const OpDef& wkv_op();
const OpDef& wkv_cached_op();
const OpDef& wkv_grad_op();

inline constexpr int64_t kWkvState = 3;  // numbers of a channel

struct WkvInputs {
  ValueId k, v, decay, bonus;
};
ValueId wkv(Builder& builder, const WkvInputs& inputs, ValueId sequence_begin, int64_t chunk = 64);
ValueId wkv_cached(Builder& builder, const WkvInputs& inputs, const StreamInputs& streams);
// dk, dv, dw, du.
std::vector<ValueId> wkv_grad(Builder& builder, const WkvInputs& inputs, ValueId sequence_begin,
                              ValueId states, ValueId dout, int64_t chunk);

}  // namespace tenon
