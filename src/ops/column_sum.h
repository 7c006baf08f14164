// out[n] f32 = the sum over rows of x [..., n]: the gradient of a broadcast row.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& column_sum_op();
ValueId column_sum(Builder& builder, ValueId x);

}  // namespace tenon
