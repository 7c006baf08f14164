// rms_norm over rows of f32 or bf16 (norm.h).
#include "backend/cpu/kernel_support.h"
#include "backend/cpu/norm.h"

namespace tenon {
const KernelDef& rms_norm_vector_kernel() {
  static constexpr KernelDef def{
      .op = "rms_norm", .name = "rms_norm_vector", .serves = serves_vector_dtypes, .run = run_rms_norm};
  return def;
}

}  // namespace tenon
