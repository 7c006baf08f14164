// Gradients of swiglu: with s = sigmoid(gate), dgate = dy * up * s * (1 + gate * (1 - s)), dup = dy * gate *
// s.
#pragma once

#include <array>

#include "ir/builder.h"

namespace tenon {

const OpDef& swiglu_grad_op();
// dgate, dup.
std::array<ValueId, 2> swiglu_grad(Builder& builder, ValueId gate, ValueId up, ValueId dy);

}  // namespace tenon
