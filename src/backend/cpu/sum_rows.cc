#include "backend/cpu/sum_rows.h"

#include <algorithm>

#include "backend/cpu/convert.h"

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

}  // namespace

void sum_rows_by_id(const TensorView& dy, const int32_t* ids, Range range, float* sums) {
  const int64_t rows = dy.type.shape[0], width = dy.type.shape[1];
  const int64_t row_bytes = *dtype_bytes(dy.type.dtype, width);
  std::fill(sums + range.begin * width, sums + range.end * width, 0.0f);
  for (int64_t i = 0; i < rows; ++i) {
    if (ids[i] < range.begin || ids[i] >= range.end) continue;
    add_row(dy.type.dtype, dy.data + i * row_bytes, width, sums + ids[i] * width);
  }
}

}  // namespace tenon
