// Where a checkpoint keeps parts of a logical weight, and how its matrices are quantised, as plain data.
#pragma once

#include <cstdint>
#include <string>

namespace tenon {

// A block of a stored tensor that holds a block of a logical weight. Both count as matrices: the innermost
// axis is the columns, all others together the rows; a vector is one column. Logical (row + i, column + j) is
// stored (from_row + i * stride, from_column + j), or (from_row + j, from_column + i) where transposed.
struct StoredBlock {
  std::string tensor;
  int64_t row = 0, column = 0;
  int64_t rows = 0, columns = 0;  // rows 0: as many as the tensor has, after the block before
  int64_t from_row = 0, from_column = 0;
  int64_t stride = 1;
  bool transposed = false;
};

// How a checkpoint's matrices are quantised beside their dtype: the method by its file's name for it, and the
// extents of values that share a scale (0: a scale a matrix or a row, as their number says).
struct StoredQuantisation {
  std::string method;  // empty: not
  int64_t block_rows = 0, block_columns = 0;
};

}  // namespace tenon
