// out = x rounded to dtype; x may be block-quantised.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& cast_op();
ValueId cast(Builder& builder, ValueId x, DType dtype);

}  // namespace tenon
