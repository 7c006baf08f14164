// gather_rows_grad: sums in f32 (in the workspace, where the output is bf16), rounded once. Each thread owns
// a range of output rows and takes the rows of dy in order.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernel_support.h"
#include "backend/cpu/sum_rows.h"
#include "base/check.h"

namespace tenon {
namespace {

void run(const KernelCall& call) {
  const TensorView &dy = call.inputs[0], &out = call.outputs[0];
  const int64_t n = out.type.shape[0], width = out.type.shape[1], count = dy.type.shape[0];
  const int64_t row_bytes = *dtype_bytes(dy.type.dtype, width);
  const int32_t* rows = input_as<int32_t>(call, 1);
  const bool direct = out.type.dtype == DType::f32;
  float* sums = reinterpret_cast<float*>(direct ? out.data : call.workspace.data());
  for (int64_t i = 0; i < count; ++i) CHECK(rows[i] >= 0 && rows[i] < n, "a row is outside x");
  call.threads->parallel_for(n, 8, [&](Range range) {
    sum_rows_by_id(dy, rows, range, sums);
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
