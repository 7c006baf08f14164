// scale over f32 or bf16 (elementwise.h).
#include "backend/cpu/elementwise.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {

const KernelDef& scale_vector_kernel() {
  static constexpr KernelDef def{.op = "scale",
                                 .name = "scale_vector",
                                 .serves = serves_vector_dtypes,
                                 .run = [](const KernelCall& call) {
                                   run_elementwise(Elementwise::scale, call,
                                                   static_cast<float>(call.attrs->real("factor")));
                                 }};
  return def;
}

}  // namespace tenon
