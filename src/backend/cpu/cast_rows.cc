// cast: parts are widened to f32 and rounded. An output in the input's place is as wide, so a part is read
// before it is written.
#include <cstring>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {
namespace {

constexpr int64_t kPart = 1024;  // whole blocks of every dtype

bool serves(const OpSite& site, const DeviceFacts& facts) {
  return facts.kind == DeviceKind::cpu && site.inputs[0].dtype != DType::f64 &&
         site.outputs[0].dtype != DType::f64;
}

void run(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &out = call.outputs[0];
  const int64_t bytes = *dtype_bytes(out.type.dtype, 1);
  call.threads->parallel_for(out.type.elements(), kPart, [&](Range range) {
    float part[kPart];
    for (int64_t i = range.begin; i < range.end; i += kPart) {
      const int64_t count = std::min(kPart, range.end - i);
      widen_to_f32(x.type.dtype, x.data, i, count, part);
      round_from_f32(out.type.dtype, part, count, out.data + i * bytes);
    }
  });
}

}  // namespace

const KernelDef& cast_rows_kernel() {
  static constexpr KernelDef def{.op = "cast", .name = "cast_rows", .serves = serves, .run = run};
  return def;
}

}  // namespace tenon
