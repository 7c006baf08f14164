// A shape as that of a matrix, as stored blocks count it (stored_block.h).
#pragma once

#include <cstdint>

#include "base/shape.h"

namespace tenon {

struct MatrixShape {
  int64_t rows, columns;
};

// The innermost axis is the columns, all others together the rows; a vector is one column.
inline MatrixShape as_matrix(const Shape& shape) {
  if (shape.rank() < 2) return {shape.elements(), 1};
  return {shape.rows(), shape[-1]};
}

}  // namespace tenon
