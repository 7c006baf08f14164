// Rotates the first 2 * pairs elements of each head of x [tokens, heads, head_dim] by table [tokens, 2,
// pairs]; the rest passes through. half-split pairs element i with i + pairs, interleaved pairs 2i with 2i
// + 1. `inverse` rotates back, which is the gradient.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& rope_op();
ValueId rope(Builder& builder, ValueId x, ValueId table, bool interleaved, bool inverse = false);

}  // namespace tenon
