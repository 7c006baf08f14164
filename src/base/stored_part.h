// Part of a tensor as a file stores it, and where its values belong in a weight: what a device with memory of
// its own needs to load the weight by itself. Plain data between who knows the files and who owns the memory;
// the bytes lie in a mapped file that outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace tenon {

// How stored bytes stand for numbers (io/narrow_floats.h has the definitions).
enum class StoredCode : uint8_t {
  plain,  // those of a dtype
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  mxfp4,  // two E2M1 values a byte, the lower half first
};

// A table of scales, one for `rows` x `columns` values of a matrix of `matrix_rows` rows; matrix by matrix,
// row by row, `grid_columns` scales a row.
struct PartScales {
  const std::byte* data = nullptr;  // null: none
  StoredCode code = StoredCode::plain;
  DType dtype = DType::f32;  // of plain ones
  int64_t scale_bytes = 0;
  int64_t rows = 1, columns = 1;
  int64_t matrix_rows = 1;
  int64_t grid_rows = 1, grid_columns = 1;

  // The scales that serve a stored row.
  const std::byte* row(int64_t stored_row) const {
    const int64_t grid_row = stored_row / matrix_rows * grid_rows + stored_row % matrix_rows / rows;
    return data + grid_row * grid_columns * scale_bytes;
  }
};

// A vector is one row.
struct StoredPart {
  std::span<const std::byte> bytes;  // of the whole tensor
  int64_t row_bytes = 0;
  StoredCode code = StoredCode::plain;
  DType dtype = DType::f32;  // of plain ones
  PartScales scales;
  // Rows go where they belong byte by byte: they are whole rows of the weight and have its dtype.
  bool unchanged = false;

  // Value (i, j) of the part is value from_column + j * column_stride of the stored row stored_row(i). With
  // `head_rows` > 0, rows come in heads of that many, in each of which rows i and i + head_rows / 2 are
  // stored side by side.
  int64_t rows = 0, from_row = 0, row_stride = 1, head_rows = 0;
  int64_t columns = 0, from_column = 0, column_stride = 1;
  // It becomes element to + i * to_row + j * to_column of the weight.
  int64_t to = 0, to_row = 0, to_column = 1;

  int64_t stored_row(int64_t i) const {
    if (head_rows == 0) return from_row + i * row_stride;
    const int64_t within = i % head_rows, half = head_rows / 2;
    return i - within + 2 * (within % half) + within / half;
  }
  bool consecutive_rows() const { return head_rows == 0 && row_stride == 1; }
};

}  // namespace tenon
