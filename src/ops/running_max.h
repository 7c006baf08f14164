// The largest exponent of a sum whose terms decay, by column: with m = 0 before a sequence's first token,
//   carried[t] = m[t - 1] + decay[t];   m[t] = max(carried[t], value[t])
// (the stabiliser state of exponential gates, Beck et al. 2024, eq. 15). decay and value f32 [tokens, n],
// sequence_begin [tokens] i32; out f32 [tokens, 2, n]: carried, then m. The sum's factor at a token is
// e^(carried - m), its new term's e^(value - m).
//
// running_max_grad: out, dout, sequence_begin to d_decay and d_value; where both are equal, all goes to
// carried. running_max_cached, for new tokens of streams: decay, value, state f32 [streams, n] (m), stream
// and positions [tokens] i32; outputs out, and the state updated in place. A token at position 0 begins anew;
// one whose stream is -1 gives zeros.
#pragma once

#include "ir/builder.h"
#include "ops/causal_conv.h"

namespace tenon {

const OpDef& running_max_op();
const OpDef& running_max_cached_op();
const OpDef& running_max_grad_op();

ValueId running_max(Builder& builder, ValueId decay, ValueId value, ValueId sequence_begin);
ValueId running_max_cached(Builder& builder, ValueId decay, ValueId value, const StreamInputs& streams);
// d_decay, d_value.
std::vector<ValueId> running_max_grad(Builder& builder, ValueId out, ValueId dout, ValueId sequence_begin);

}  // namespace tenon
