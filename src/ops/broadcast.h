// Products and sums with a vector along one side of a matrix x [..., n], in x's dtype: add_row, x + row[n];
// mul_row, x * (row[n] + offset); mul_column, x * column[...] with one number a row of x; row_dot, the sums
// of a * b over rows, [...] in the dtype of its attribute.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& add_row_op();
const OpDef& mul_row_op();
const OpDef& mul_column_op();
const OpDef& row_dot_op();
ValueId add_row(Builder& builder, ValueId x, ValueId row);
ValueId mul_row(Builder& builder, ValueId x, ValueId row, double offset = 0);
ValueId mul_column(Builder& builder, ValueId x, ValueId column);
// Sums of rows of a * b, in `shape` with one element a row.
ValueId row_dot(Builder& builder, ValueId a, ValueId b, DType dtype, Shape shape);

}  // namespace tenon
