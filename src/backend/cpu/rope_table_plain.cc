// rope_table in double, once a step: not worth a vector version.
#include <cmath>

#include "backend/cpu/kernel_support.h"

namespace tenon {
namespace {

void run(const KernelCall& call) {
  const double amplitude = call.attrs->real("amplitude");
  const int64_t tokens = call.inputs[0].type.shape[0], pairs = call.inputs[1].type.shape[0];
  const int32_t* positions = input_as<int32_t>(call, 0);
  const float* inv_freq = input_as<float>(call, 1);
  float* table = output_as<float>(call, 0);
  call.threads->parallel_for(tokens, 8, [&](Range range) {
    for (int64_t t = range.begin; t < range.end; ++t) {
      float* cosines = table + t * 2 * pairs;
      for (int64_t i = 0; i < pairs; ++i) {
        const double angle = static_cast<double>(positions[t]) * inv_freq[i];
        cosines[i] = static_cast<float>(amplitude * std::cos(angle));
        cosines[pairs + i] = static_cast<float>(amplitude * std::sin(angle));
      }
    }
  });
}

}  // namespace

const KernelDef& rope_table_plain_kernel() {
  static constexpr KernelDef def{
      .op = "rope_table", .name = "rope_table_plain", .serves = serves_all, .run = run};
  return def;
}

}  // namespace tenon
