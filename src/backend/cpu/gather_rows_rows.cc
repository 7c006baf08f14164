// gather_rows: rows are copied as they are, in any plain dtype.
#include <cstring>

#include "backend/cpu/kernel_support.h"
#include "base/check.h"

namespace tenon {
namespace {

void run(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &out = call.outputs[0];
  const int64_t n = x.type.shape[0], row_bytes = *dtype_bytes(x.type.dtype, x.type.shape[1]);
  const int32_t* rows = input_as<int32_t>(call, 1);
  call.threads->parallel_for(out.type.shape[0], 8, [&](Range range) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      CHECK(rows[i] >= 0 && rows[i] < n, "a row is outside x");
      std::memcpy(out.data + i * row_bytes, x.data + rows[i] * row_bytes, static_cast<size_t>(row_bytes));
    }
  });
}

}  // namespace

const KernelDef& gather_rows_rows_kernel() {
  static constexpr KernelDef def{
      .op = "gather_rows", .name = "gather_rows_rows", .serves = serves_all, .run = run};
  return def;
}

}  // namespace tenon
