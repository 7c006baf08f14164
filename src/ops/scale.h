// out = factor * x.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& scale_op();
ValueId scale(Builder& builder, ValueId x, double factor);

}  // namespace tenon
