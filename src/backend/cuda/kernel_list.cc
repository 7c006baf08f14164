#include "backend/cuda/kernel_list.h"

#include <vector>

namespace tenon::cuda {

std::span<const KernelDef> all_kernels() {
  static const std::vector<KernelDef> kernels = [] {
    std::vector<KernelDef> list;
    for (const std::span<const KernelDef> group : {
#define TENON_KERNELS(group) group##_kernels(),
#include "backend/cuda/kernel_list.inc"
#undef TENON_KERNELS
         }) {
      list.insert(list.end(), group.begin(), group.end());
    }
    return list;
  }();
  return kernels;
}

}  // namespace tenon::cuda
