// add over f32 or bf16 (elementwise.h).
#include "backend/cpu/elementwise.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {

const KernelDef& add_vector_kernel() {
  static constexpr KernelDef def{
      .op = "add", .name = "add_vector", .serves = serves_vector_dtypes, .run = [](const KernelCall& call) {
        run_elementwise(Elementwise::add, call);
      }};
  return def;
}

}  // namespace tenon
