// accumulate of f32 or bf16 (elementwise.h).
#include "backend/cpu/elementwise.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {

const KernelDef& accumulate_vector_kernel() {
  static constexpr KernelDef def{
      .op = "accumulate", .name = "accumulate_vector", .serves = serves_vector_dtypes, .run = run_accumulate};
  return def;
}

}  // namespace tenon
