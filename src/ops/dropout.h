// out = keep(i) ? x / (1 - rate) : 0 with keep(i) drawn from a counter: word i % 4 of Philox4x32-10 (Salmon
// et al. 2011; ops/philox.h) with key seed [2] i32 (given before each run) and counter (i / 4, stream), kept
// where the word is at least round(rate * 2^32). The same seed and stream give the same mask, so the
// gradient, and a recomputed forward, is this op again.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& dropout_op();
ValueId dropout(Builder& builder, ValueId x, ValueId seed, double rate, int64_t stream);

}  // namespace tenon
