// Cutting and joining along the innermost axis of x [..., n], in x's dtype: slice_columns, columns begin ..
// begin + count; pad_columns, x between zeros so that it starts at `begin` of `width` columns (the gradient
// of a slice); concat_columns, all inputs side by side; repeat_columns, `times` copies of x side by side;
// fold_columns, the sum of `times` equal parts (its gradient).
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& slice_columns_op();
const OpDef& pad_columns_op();
const OpDef& concat_columns_op();
const OpDef& repeat_columns_op();
const OpDef& fold_columns_op();
ValueId slice_columns(Builder& builder, ValueId x, int64_t begin, int64_t count);
ValueId pad_columns(Builder& builder, ValueId x, int64_t begin, int64_t width);
ValueId concat_columns(Builder& builder, std::vector<ValueId> inputs);
ValueId repeat_columns(Builder& builder, ValueId x, int64_t times);
ValueId fold_columns(Builder& builder, ValueId x, int64_t times);

}  // namespace tenon
