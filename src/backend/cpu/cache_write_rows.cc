// cache_write: rows are copied into their slots, in any plain dtype; the rest of the cache is untouched.
#include <cstring>

#include "backend/cpu/kernel_support.h"
#include "base/check.h"

namespace tenon {
namespace {

void run(const KernelCall& call) {
  const TensorView &cache = call.outputs[0], &rows = call.inputs[1];
  const Shape& shape = cache.type.shape;
  const int64_t slot_count = shape[0] * shape[1];
  const int64_t row_bytes = *dtype_bytes(cache.type.dtype, shape[2] * shape[3]);
  const int32_t* slots = input_as<int32_t>(call, 2);
  for (int64_t t = 0; t < rows.type.shape[0]; ++t) {
    if (slots[t] < 0) continue;
    CHECK(slots[t] < slot_count, "a slot is outside the cache");
    std::memcpy(cache.data + slots[t] * row_bytes, rows.data + t * row_bytes, static_cast<size_t>(row_bytes));
  }
}

}  // namespace

const KernelDef& cache_write_rows_kernel() {
  static constexpr KernelDef def{
      .op = "cache_write", .name = "cache_write_rows", .serves = serves_all, .run = run};
  return def;
}

}  // namespace tenon
