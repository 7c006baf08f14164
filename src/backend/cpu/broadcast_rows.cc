// Products and sums with a vector along one side of a matrix, row by row in f32.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernel_support.h"
#include "base/check.h"

namespace tenon {
namespace {

constexpr int64_t kRowGrain = 8, kPart = 512;

int64_t rows_of(const Type& type) {
  const int64_t width = type.shape[-1];
  return width == 0 ? 0 : type.elements() / width;
}

// out = f(x, part of the vector, count) in parts of each row; `vector` is read along the row, or at its row.
template <typename F>
void by_row(const KernelCall& call, bool along, F f) {
  const TensorView &x = call.inputs[0], &vector = call.inputs[1], &out = call.outputs[0];
  const int64_t width = x.type.shape[-1], bytes = *dtype_bytes(out.type.dtype, 1);
  call.threads->parallel_for(rows_of(x.type), kRowGrain, [&](Range range) {
    float values[kPart], factors[kPart];
    for (int64_t r = range.begin; r < range.end; ++r) {
      if (!along) widen_to_f32(vector.type.dtype, vector.data, r, 1, factors);
      for (int64_t j = 0; j < width; j += kPart) {
        const int64_t count = std::min(kPart, width - j);
        widen_to_f32(x.type.dtype, x.data, r * width + j, count, values);
        if (along) widen_to_f32(vector.type.dtype, vector.data, j, count, factors);
        f(values, factors, count);
        round_from_f32(out.type.dtype, values, count, out.data + (r * width + j) * bytes);
      }
    }
  });
}

void add_row(const KernelCall& call) {
  by_row(call, true, [](float* x, const float* row, int64_t count) {
    for (int64_t i = 0; i < count; ++i) x[i] += row[i];
  });
}

void mul_row(const KernelCall& call) {
  const float offset = static_cast<float>(call.attrs->real("offset"));
  by_row(call, true, [offset](float* x, const float* row, int64_t count) {
    for (int64_t i = 0; i < count; ++i) x[i] *= row[i] + offset;
  });
}

void mul_column(const KernelCall& call) {
  by_row(call, false, [](float* x, const float* column, int64_t count) {
    for (int64_t i = 0; i < count; ++i) x[i] *= column[0];
  });
}

void row_dot(const KernelCall& call) {
  const TensorView &a = call.inputs[0], &b = call.inputs[1], &out = call.outputs[0];
  const int64_t width = a.type.shape[-1], bytes = *dtype_bytes(out.type.dtype, 1);
  call.threads->parallel_for(rows_of(a.type), kRowGrain, [&](Range range) {
    float left[kPart], right[kPart];
    for (int64_t r = range.begin; r < range.end; ++r) {
      double total = 0;
      for (int64_t j = 0; j < width; j += kPart) {
        const int64_t count = std::min(kPart, width - j);
        widen_to_f32(a.type.dtype, a.data, r * width + j, count, left);
        widen_to_f32(b.type.dtype, b.data, r * width + j, count, right);
        for (int64_t i = 0; i < count; ++i) total += static_cast<double>(left[i]) * right[i];
      }
      const float value = static_cast<float>(total);
      round_from_f32(out.type.dtype, &value, 1, out.data + r * bytes);
    }
  });
}

}  // namespace

const KernelDef& add_row_rows_kernel() {
  static constexpr KernelDef def{
      .op = "add_row", .name = "add_row_rows", .serves = serves_vector_dtypes, .run = add_row};
  return def;
}
const KernelDef& mul_row_rows_kernel() {
  static constexpr KernelDef def{
      .op = "mul_row", .name = "mul_row_rows", .serves = serves_vector_dtypes, .run = mul_row};
  return def;
}
const KernelDef& mul_column_rows_kernel() {
  static constexpr KernelDef def{
      .op = "mul_column", .name = "mul_column_rows", .serves = serves_vector_dtypes, .run = mul_column};
  return def;
}
const KernelDef& row_dot_rows_kernel() {
  static constexpr KernelDef def{
      .op = "row_dot", .name = "row_dot_rows", .serves = serves_vector_dtypes, .run = row_dot};
  return def;
}

}  // namespace tenon
