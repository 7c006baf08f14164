// out = x / (1 + exp(-x)).
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& silu_op();
ValueId silu(Builder& builder, ValueId x);

}  // namespace tenon
