// x' = 0, in place.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& zero_op();
ValueId zero(Builder& builder, ValueId x);

}  // namespace tenon
