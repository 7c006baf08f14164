// rms_norm_grad_input over rows of f32 or bf16 (norm.h).
#include "backend/cpu/kernel_support.h"
#include "backend/cpu/norm.h"

namespace tenon {
const KernelDef& rms_norm_grad_input_vector_kernel() {
  static constexpr KernelDef def{.op = "rms_norm_grad_input",
                                 .name = "rms_norm_grad_input_vector",
                                 .serves = serves_vector_dtypes,
                                 .run = run_rms_norm_grad_input};
  return def;
}

}  // namespace tenon
