// sum in double over parts of fixed length, added in order: the same bits for any thread count.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernel_support.h"
#include "base/checked_math.h"

namespace tenon {
namespace {

constexpr int64_t kPart = 1024;

double sum_part(DType dtype, const std::byte* data, int64_t begin, int64_t count) {
  float part[kPart];
  widen_to_f32(dtype, data, begin, count, part);
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += part[i];
  return total;
}

void run(const KernelCall& call) {
  const TensorView& x = call.inputs[0];
  const int64_t n = x.type.elements(), parts = ceil_div(n, kPart);
  double* totals = reinterpret_cast<double*>(call.workspace.data());
  call.threads->parallel_for(parts, 4, [&](Range range) {
    for (int64_t p = range.begin; p < range.end; ++p) {
      totals[p] = sum_part(x.type.dtype, x.data, p * kPart, std::min(kPart, n - p * kPart));
    }
  });
  double total = 0;
  for (int64_t p = 0; p < parts; ++p) total += totals[p];
  *output_as<float>(call, 0) = static_cast<float>(total);
}

int64_t workspace_bytes(const OpSite& site, const DeviceFacts&) {
  return ceil_div(site.inputs[0].elements(), kPart) * 8;
}

}  // namespace

const KernelDef& sum_parts_kernel() {
  static constexpr KernelDef def{.op = "sum",
                                 .name = "sum_parts",
                                 .serves = serves_vector_dtypes,
                                 .workspace_bytes = workspace_bytes,
                                 .run = run};
  return def;
}

}  // namespace tenon
