// dx [n, width] in dy's dtype: rows of dy added at rows[i] in order, zero elsewhere.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& gather_rows_grad_op();
ValueId gather_rows_grad(Builder& builder, ValueId dy, ValueId rows, int64_t n);

}  // namespace tenon
