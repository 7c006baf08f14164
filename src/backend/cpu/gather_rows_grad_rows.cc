// gather_rows_grad: sums in f32 (in the workspace, where the output is bf16), rounded once. Each thread owns
// a range of output rows and takes the rows of dy in order.
#include <cstring>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernel_support.h"
#include "base/check.h"

namespace tenon {
namespace {

constexpr int64_t kPart = 256;

void add_row(DType dtype, const std::byte* row, int64_t width, float* out) {
  float part[kPart];
  for (int64_t i = 0; i < width; i += kPart) {
    const int64_t count = std::min(kPart, width - i);
    widen_to_f32(dtype, row, i, count, part);
    for (int64_t j = 0; j < count; ++j) out[i + j] += part[j];
  }
}

void run(const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &out = call.outputs[0];
  const int64_t n = out.type.shape[0], width = out.type.shape[1], count = dy.type.shape[0];
  const int64_t row_bytes = *dtype_bytes(dy.type.dtype, width);
  const int32_t* rows = input_as<int32_t>(call, 1);
  const bool direct = out.type.dtype == DType::f32;
  float* sums = reinterpret_cast<float*>(direct ? out.data : call.workspace.data());
  for (int64_t i = 0; i < count; ++i) CHECK(rows[i] >= 0 && rows[i] < n, "a row is outside x");
  call.threads->parallel_for(n, 8, [&](Range range) {
    std::fill(sums + range.begin * width, sums + range.end * width, 0.0f);
    for (int64_t i = 0; i < count; ++i) {
      if (rows[i] < range.begin || rows[i] >= range.end) continue;
      add_row(dy.type.dtype, dy.data + i * row_bytes, width, sums + rows[i] * width);
    }
    if (direct) return;
    round_from_f32(out.type.dtype, sums + range.begin * width, range.size() * width,
                   out.data + range.begin * row_bytes);
  });
}

int64_t workspace_bytes(const OpSite& site, const DeviceFacts&) {
  return site.outputs[0].dtype == DType::f32 ? 0 : site.outputs[0].elements() * 4;
}

}  // namespace

const KernelDef& gather_rows_grad_rows_kernel() {
  static constexpr KernelDef def{.op = "gather_rows_grad",
                                 .name = "gather_rows_grad_rows",
                                 .serves = serves_vector_dtypes,
                                 .workspace_bytes = workspace_bytes,
                                 .run = run};
  return def;
}

}  // namespace tenon
