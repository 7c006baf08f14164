#include "backend/cpu/kernel_list.h"

#include <vector>

#include "backend/cpu/reference_kernels.h"

namespace tenon {

#define TENON_KERNEL(name) const KernelDef& name##_kernel();
#include "backend/cpu/kernel_list.inc"
#undef TENON_KERNEL

std::span<const KernelDef> cpu_kernels() {
  static const std::vector<KernelDef> kernels = [] {
    std::vector<KernelDef> list = {
#define TENON_KERNEL(name) name##_kernel(),
#include "backend/cpu/kernel_list.inc"
#undef TENON_KERNEL
    };
    const std::span<const KernelDef> references = reference_kernels();
    list.insert(list.end(), references.begin(), references.end());
    return list;
  }();
  return kernels;
}

}  // namespace tenon
