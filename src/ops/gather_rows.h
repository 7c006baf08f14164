// out[i] = x[rows[i]]; x [n, width], rows [count] i32.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& gather_rows_op();
ValueId gather_rows(Builder& builder, ValueId x, ValueId rows);

}  // namespace tenon
