// swiglu_grad over f32 or bf16 (elementwise.h).
#include "backend/cpu/elementwise.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {

const KernelDef& swiglu_grad_vector_kernel() {
  static constexpr KernelDef def{
      .op = "swiglu_grad",
      .name = "swiglu_grad_vector",
      .serves = serves_vector_dtypes,
      .run = [](const KernelCall& call) { run_elementwise(Elementwise::swiglu_grad, call); }};
  return def;
}

}  // namespace tenon
