// What llama.cpp's converter does to weights, as functions of matrices of floats.
#pragma once

#include <string>
#include <vector>

#include "base/shape.h"

namespace tenon {

struct Matrix {
  std::string name;
  Shape shape;
  std::vector<float> values;

  int64_t columns() const { return shape.rank() > 1 ? shape[-1] : 1; }
  int64_t rows() const { return shape.elements() / columns(); }
};

// Rows i and i + half of a head to 2i and 2i + 1.
void permute_rope(Matrix& m, int64_t heads);

// [experts, rows, columns] from columns `first`, `first` + step, ... of [experts, columns, ...], transposed.
Matrix cut(const Matrix& m, std::string name, int64_t first, int64_t step);

// Rows [from, from + rows) of each of `parts` equal parts of a matrix, one after the other.
Matrix rows_of_parts(const Matrix& m, std::string name, int64_t parts, int64_t from, int64_t rows);

// All queries, all keys, all values of groups that each have their own.
void regroup(Matrix& m, int64_t groups, int64_t heads);

// From all of a group side by side to the first of every group, the second of every group, and so on: heads
// of `dim` rows after `first`, or of `dim` columns.
void tile_rows(Matrix& m, int64_t first, int64_t groups, int64_t heads, int64_t dim);
void tile_columns(Matrix& m, int64_t groups, int64_t heads, int64_t dim);

void transpose(Matrix& m);

}  // namespace tenon
