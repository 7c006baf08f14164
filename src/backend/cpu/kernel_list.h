// All kernels of the CPU backend: the vector kernels of kernel_list.inc in that order, then the plain fp64
// reference of every op (cpu/reference_kernels.h), which serves what no other kernel does.
#pragma once

#include <span>

#include "device/kernel.h"

namespace tenon {

std::span<const KernelDef> cpu_kernels();

}  // namespace tenon
