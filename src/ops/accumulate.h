// total' = total + x, in place; total f32, x of the same shape in any float dtype.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& accumulate_op();
ValueId accumulate(Builder& builder, ValueId total, ValueId x);

}  // namespace tenon
