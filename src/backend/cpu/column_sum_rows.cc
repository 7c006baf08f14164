// column_sum: each thread owns a range of columns and adds the rows in order.
#include <algorithm>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {
namespace {

constexpr int64_t kPart = 256;

void run(const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const int64_t n = x.type.shape[-1], rows = n == 0 ? 0 : x.type.elements() / n;
  const int64_t row_bytes = *dtype_bytes(x.type.dtype, n);
  float* out = output_as<float>(call, 0);
  call.threads->parallel_for(n, kPart, [&](Range range) {
    float part[kPart];
    std::fill(out + range.begin, out + range.end, 0.0f);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = range.begin; i < range.end; i += kPart) {
        const int64_t count = std::min(kPart, range.end - i);
        widen_to_f32(x.type.dtype, x.data + row * row_bytes, i, count, part);
        for (int64_t j = 0; j < count; ++j) out[i + j] += part[j];
      }
    }
  });
}

}  // namespace

const KernelDef& column_sum_rows_kernel() {
  static constexpr KernelDef def{
      .op = "column_sum", .name = "column_sum_rows", .serves = serves_vector_dtypes, .run = run};
  return def;
}

}  // namespace tenon
