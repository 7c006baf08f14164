// The same elements under another shape: a view, no kernel runs.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& reshape_op();
ValueId reshape(Builder& builder, ValueId x, Shape shape);

}  // namespace tenon
