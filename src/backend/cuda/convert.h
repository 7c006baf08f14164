// Rounding a tensor of any dtype to a plain one, clearing one, adding a row: steps of several kernels.
#pragma once

#include "backend/cuda/tensor.h"

namespace tenon::cuda {

void launch_convert(const KernelCall& call, const Tensor& from, const Tensor& to, int64_t count);
// Writes zeros; `data` is aligned to 4 bytes.
void launch_clear(const KernelCall& call, std::byte* data, int64_t bytes);

// out[rows, columns] = x + row[columns], rounded to out's dtype.
void launch_add_row(const KernelCall& call, const Tensor& x, const float* row, const Tensor& out,
                    int64_t rows, int64_t columns);

}  // namespace tenon::cuda
