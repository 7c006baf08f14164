// Depthwise causal convolution over packed sequences: out[t, c] = sum over j of w[c, j] * x[t - (K - 1 - j) *
// dilation, c], leaving out tokens before the sequence of t. x [tokens, channels], w [channels, K],
// sequence_begin [tokens] i32; out in x's dtype.
//
// causal_conv_grad_input: dy, w, sequence_begin to dx. causal_conv_grad_weight: x, dy, sequence_begin to f32
// [channels, K]. causal_conv_cached, for new tokens of streams whose last inputs are kept: x, w, state
// [streams, (K - 1) * dilation, channels] in x's dtype, stream [tokens] and positions [tokens] i32; out, and
// the state updated in place. The row of a state at position p modulo its rows is the input at position p.
// Tokens of a stream come in order; a token whose stream is -1 gives zeros.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& causal_conv_op();
const OpDef& causal_conv_cached_op();
const OpDef& causal_conv_grad_input_op();
const OpDef& causal_conv_grad_weight_op();

struct StreamInputs {
  ValueId state, stream, positions;
};

ValueId causal_conv(Builder& builder, ValueId x, ValueId w, ValueId sequence_begin, int64_t dilation = 1);
ValueId causal_conv_cached(Builder& builder, ValueId x, ValueId w, const StreamInputs& streams,
                           int64_t dilation = 1);
ValueId causal_conv_grad_input(Builder& builder, ValueId dy, ValueId w, ValueId sequence_begin,
                               int64_t dilation);
ValueId causal_conv_grad_weight(Builder& builder, ValueId x, ValueId dy, ValueId sequence_begin, int64_t taps,
                                int64_t dilation);

}  // namespace tenon
