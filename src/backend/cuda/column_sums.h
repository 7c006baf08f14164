// Sums over the rows of a matrix that need not exist: a functor gives its elements. Rows are cut into parts
// that depend on the sizes alone; the parts' sums are added in order.
#pragma once

#include "backend/cuda/launch.h"

namespace tenon::cuda {

inline int64_t column_sum_rows_per_part(int64_t rows) {
  return std::max<int64_t>(32, ceil_div(rows, 128));
}
inline int64_t column_sum_parts(int64_t rows) {
  return ceil_div(rows, column_sum_rows_per_part(rows));
}
inline int64_t column_sums_workspace(int64_t rows, int64_t columns) {
  return column_sum_parts(rows) * columns * static_cast<int64_t>(sizeof(float));
}

// F: float operator()(int64_t row, int64_t column) const.
template <typename F>
__global__ void column_sum_parts_kernel(F f, int64_t rows, int64_t columns, int64_t rows_per_part,
                                        float* partial) {
  const int64_t column = thread_in_grid();
  if (column >= columns) return;
  const int64_t begin = blockIdx.y * rows_per_part;
  const int64_t end = begin + rows_per_part < rows ? begin + rows_per_part : rows;
  float total = 0;
  for (int64_t row = begin; row < end; ++row) total += f(row, column);
  partial[blockIdx.y * columns + column] = total;
}

template <typename T>
__global__ void column_sum_finish(const T* partial, int64_t parts, int64_t columns, T* out) {
  const int64_t column = thread_in_grid();
  if (column >= columns) return;
  T total = 0;
  for (int64_t part = 0; part < parts; ++part) total += partial[part * columns + column];
  out[column] = total;
}

// Into output 0, f32 [columns]; `workspace_offset` bytes of the workspace are the caller's.
template <typename F>
void launch_column_sums(const KernelCall& call, F f, int64_t rows, int64_t columns,
                        int64_t workspace_offset = 0) {
  float* partial = reinterpret_cast<float*>(call.workspace.data() + workspace_offset);
  const int64_t parts = column_sum_parts(rows);
  launch(call, column_sum_parts_kernel<F>, dim3(blocks_for(columns), static_cast<unsigned>(parts)), kThreads,
         0, f, rows, columns, column_sum_rows_per_part(rows), partial);
  launch(call, column_sum_finish<float>, blocks_for(columns), kThreads, 0, static_cast<const float*>(partial),
         parts, columns, reinterpret_cast<float*>(call.outputs[0].data));
}

}  // namespace tenon::cuda
