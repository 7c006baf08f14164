// zero, of any dtype.
#include <cstring>

#include "backend/cpu/kernel_support.h"

namespace tenon {
namespace {

void run(const KernelCall& call) {
  const TensorView& out = call.outputs[0];
  call.threads->parallel_for(out.type.bytes(), kElementGrain, [&](Range range) {
    std::memset(out.data + range.begin, 0, static_cast<size_t>(range.size()));
  });
}

}  // namespace

const KernelDef& zero_rows_kernel() {
  static constexpr KernelDef def{.op = "zero", .name = "zero_rows", .serves = serves_all, .run = run};
  return def;
}

}  // namespace tenon
