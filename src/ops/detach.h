// out = x, and no gradient flows back: for stored values that are not trained.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& detach_op();
ValueId detach(Builder& builder, ValueId x);

}  // namespace tenon
