// How long each token's sequence is in this call: 1 + the largest position among tokens of the same
// `sequence` (where it begins). positions and sequence [tokens] i32; out [tokens] i32. No gradient flows.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& sequence_length_op();
ValueId sequence_length(Builder& builder, ValueId positions, ValueId sequence);

}  // namespace tenon
