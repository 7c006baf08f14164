// out[i] = value[0] for a shape; value is f32 [1].
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& fill_op();
ValueId fill(Builder& builder, ValueId value, Shape shape);

}  // namespace tenon
