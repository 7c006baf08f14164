// out = a * b, element by element; shapes and dtypes equal.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& mul_op();
ValueId mul(Builder& builder, ValueId a, ValueId b);

}  // namespace tenon
