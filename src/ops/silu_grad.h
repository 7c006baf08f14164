// dx = dy * s * (1 + x * (1 - s)), s = 1 / (1 + exp(-x)).
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& silu_grad_op();
ValueId silu_grad(Builder& builder, ValueId x, ValueId dy);

}  // namespace tenon
