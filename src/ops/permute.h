// out = x with its axes in another order: axis i of the output is axis order[i] of x (any rank, any plain
// dtype).
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& permute_op();
ValueId permute(Builder& builder, ValueId x, std::vector<int64_t> order);

}  // namespace tenon
