#include "tests/gguf_matrices.h"

#include <algorithm>
#include <utility>

namespace tenon {

void permute_rope(Matrix& m, int64_t heads) {
  const int64_t columns = m.columns(), dim = m.shape[0] / heads, half = dim / 2;
  const std::vector<float> from = m.values;
  for (int64_t row = 0; row < m.shape[0]; ++row) {
    const int64_t within = row % dim, to = row - within + 2 * (within % half) + within / half;
    std::copy_n(from.begin() + row * columns, columns, m.values.begin() + to * columns);
  }
}

Matrix cut(const Matrix& m, std::string name, int64_t first, int64_t step) {
  const int64_t experts = m.shape[0], in = m.shape[1], wide = m.shape[2], rows = wide / step;
  Matrix to{std::move(name), Shape{experts, rows, in}, {}};
  for (int64_t e = 0; e < experts; ++e) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < in; ++i)
        to.values.push_back(m.values[static_cast<size_t>((e * in + i) * wide + first + r * step)]);
    }
  }
  return to;
}

Matrix rows_of_parts(const Matrix& m, std::string name, int64_t parts, int64_t from, int64_t rows) {
  const int64_t columns = m.columns(), all = m.rows();
  Matrix to{std::move(name), m.shape.rank() > 1 ? Shape{parts * rows, columns} : Shape{parts * rows}, {}};
  for (int64_t part = 0; part < parts; ++part) {
    const auto begin = m.values.begin() + (part * all / parts + from) * columns;
    to.values.insert(to.values.end(), begin, begin + rows * columns);
  }
  return to;
}

void regroup(Matrix& m, int64_t groups, int64_t heads) {
  const int64_t dim = m.rows() / (heads + 2 * groups), queries = heads / groups * dim;
  std::vector<float> all;
  for (const auto& [from, rows] : {std::pair{int64_t{0}, queries}, {queries, dim}, {queries + dim, dim}}) {
    const Matrix part = rows_of_parts(m, "", groups, from, rows);
    all.insert(all.end(), part.values.begin(), part.values.end());
  }
  m.values = all;
}

void tile_rows(Matrix& m, int64_t first, int64_t groups, int64_t heads, int64_t dim) {
  const std::vector<float> from = m.values;
  const int64_t size = dim * m.columns(), begin = first * m.columns(), in_group = heads / groups;
  for (int64_t to = 0; to < heads; ++to) {
    const int64_t head = to % groups * in_group + to / groups;
    std::copy_n(from.begin() + begin + head * size, size, m.values.begin() + begin + to * size);
  }
}

void tile_columns(Matrix& m, int64_t groups, int64_t heads, int64_t dim) {
  transpose(m);
  tile_rows(m, 0, groups, heads, dim);
  transpose(m);
}

void transpose(Matrix& m) {
  const std::vector<float> from = m.values;
  const int64_t rows = m.rows(), columns = m.columns();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column)
      m.values[static_cast<size_t>(column * rows + row)] = from[static_cast<size_t>(row * columns + column)];
  }
  m.shape = Shape{columns, rows};
}

}  // namespace tenon
