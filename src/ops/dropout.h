// out = keep(i) ? x / (1 - rate) : 0 with keep(i) drawn from a counter: Philox4x32-10 (Salmon et al. 2011)
// keyed by seed [2] i32 (given before each run), counter (element index, stream). The same seed and stream
// give the same mask, so the gradient, and a recomputed forward, is this op again.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& dropout_op();
ValueId dropout(Builder& builder, ValueId x, ValueId seed, double rate, int64_t stream);

}  // namespace tenon
