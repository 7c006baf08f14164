// rms_norm_grad_weight over rows of f32 or bf16 (norm.h).
#include "backend/cpu/kernel_support.h"
#include "backend/cpu/norm.h"

namespace tenon {
const KernelDef& rms_norm_grad_weight_vector_kernel() {
  static constexpr KernelDef def{
      .op = "rms_norm_grad_weight",
      .name = "rms_norm_grad_weight_vector",
      .serves = serves_vector_dtypes,
      .workspace_bytes = [](const OpSite& site,
                            const DeviceFacts&) { return site.inputs[0].shape.rows() * 4; },
      .run = run_rms_norm_grad_weight};
  return def;
}

}  // namespace tenon
