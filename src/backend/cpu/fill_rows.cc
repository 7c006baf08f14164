// fill.
#include <algorithm>

#include "backend/cpu/kernel_support.h"

namespace tenon {
namespace {

void run(const KernelCall& call) {
  const float value = *input_as<float>(call, 0);
  float* out = output_as<float>(call, 0);
  call.threads->parallel_for(call.outputs[0].type.elements(), kElementGrain,
                             [&](Range range) { std::fill(out + range.begin, out + range.end, value); });
}

}  // namespace

const KernelDef& fill_rows_kernel() {
  static constexpr KernelDef def{.op = "fill", .name = "fill_rows", .serves = serves_all, .run = run};
  return def;
}

}  // namespace tenon
