// out[1] f32 = the sum of all elements of x, in a fixed order.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& sum_op();
ValueId sum(Builder& builder, ValueId x);

}  // namespace tenon
