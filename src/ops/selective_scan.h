// The selective state space (Gu and Dao 2023), discretised, over packed sequences. For channel c with a
// state h [N], zero before the sequence's first token:
//   h = exp(dt * a[c]) * h + dt * x * b;   out = h . c
// x [tokens, channels], dt f32 [tokens, channels] (after its softplus), a f32 [channels, N] (negative), b and
// c [tokens, groups, N] in x's dtype; channel i reads group i / (channels / groups). sequence_begin [tokens]
// i32. Outputs: out in x's dtype, and states f32 [ceil(tokens / chunk), channels, N], the state before each
// chunk's first token, from which the gradient computes the others again. A gradient flows from out alone.
//
// selective_scan_grad: x, dt, a, b, c, sequence_begin, states, dout to dx, ddt, da, db, dc.
// selective_scan_cached, for new tokens of streams: x, dt, a, b, c, state f32 [streams, channels, N], stream
// and positions [tokens] i32; outputs out, and the state updated in place. A token at position 0 begins anew;
// one whose stream is -1 gives zeros.
#pragma once

#include "ir/builder.h"
#include "ops/causal_conv.h"

namespace tenon {

const OpDef& selective_scan_op();
const OpDef& selective_scan_cached_op();
const OpDef& selective_scan_grad_op();

struct SelectiveScanInputs {
  ValueId x, dt, a, b, c;
};
ValueId selective_scan(Builder& builder, const SelectiveScanInputs& inputs, ValueId sequence_begin,
                       int64_t chunk = 64);
ValueId selective_scan_cached(Builder& builder, const SelectiveScanInputs& inputs,
                              const StreamInputs& streams);
// dx, ddt, da, db, dc.
std::vector<ValueId> selective_scan_grad(Builder& builder, const SelectiveScanInputs& inputs,
                                         ValueId sequence_begin, ValueId states, ValueId dout, int64_t chunk);

}  // namespace tenon
