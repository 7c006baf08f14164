// Rounding a tensor of any dtype to a plain one, and clearing one: steps of several kernels.
#pragma once

#include "backend/cuda/tensor.h"

namespace tenon::cuda {

void launch_convert(const KernelCall& call, const Tensor& from, const Tensor& to, int64_t count);
// Writes zeros; `data` is aligned to 4 bytes.
void launch_clear(const KernelCall& call, std::byte* data, int64_t bytes);

}  // namespace tenon::cuda
