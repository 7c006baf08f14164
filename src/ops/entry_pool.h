// Compresses every `stride` tokens of a sequence into one entry at the last of them, channel by channel: a
// softmax of gates weighs values. x and gate [tokens, parts * width], bias f32 [stride, parts * width]
// added to the gate of the i-th token of a stride, sequence_begin [tokens] i32; out [tokens, width] in x's
// dtype, zero at tokens that end no stride. With parts = 2 an entry takes the second half of the columns
// of its own tokens and the first half of those of the stride before, where there is one; with parts = 1
// its own tokens alone.
//
// entry_pool_grad: x, gate, bias, sequence_begin, dout to dx, dgate, dbias. entry_pool_cached, for new
// tokens of streams: x, gate, bias, state [streams, parts * stride, 2 * parts * width] in x's dtype (x and
// gate of position p in row p modulo the rows), stream and positions [tokens] i32; out, and the state
// updated in place. Tokens of a stream come in order; a token whose stream is -1 gives zeros.
#pragma once

#include "ir/builder.h"
#include "ops/causal_conv.h"

namespace tenon {

const OpDef& entry_pool_op();
const OpDef& entry_pool_grad_op();
const OpDef& entry_pool_cached_op();

struct EntryPoolInputs {
  ValueId x, gate, bias;
};
ValueId entry_pool(Builder& builder, const EntryPoolInputs& inputs, ValueId sequence_begin, int64_t parts);
// dx, dgate, dbias.
std::vector<ValueId> entry_pool_grad(Builder& builder, const EntryPoolInputs& inputs, ValueId sequence_begin,
                                     ValueId dout, int64_t parts);
ValueId entry_pool_cached(Builder& builder, const EntryPoolInputs& inputs, const StreamInputs& streams,
                          int64_t parts);

}  // namespace tenon
