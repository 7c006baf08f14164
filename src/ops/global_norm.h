// out[1] f32 = sqrt of the sum of squares of all inputs (f32), summed in f64 in a fixed order.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& global_norm_op();
ValueId global_norm(Builder& builder, std::vector<ValueId> inputs);

}  // namespace tenon
