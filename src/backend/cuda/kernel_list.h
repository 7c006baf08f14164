// All kernels of the CUDA backend: the tables of kernel_list.inc in that order.
#pragma once

#include <span>

#include "device/kernel.h"

namespace tenon::cuda {

#define TENON_KERNELS(group) std::span<const KernelDef> group##_kernels();
#include "backend/cuda/kernel_list.inc"
#undef TENON_KERNELS

std::span<const KernelDef> all_kernels();

}  // namespace tenon::cuda
