// embedding_grad: each thread owns a range of the vocabulary and takes its tokens in order.
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
  const TensorView& dy = call.inputs[0];
  const int64_t tokens = dy.type.shape[0], width = dy.type.shape[1], vocab = call.outputs[0].type.shape[0];
  const int64_t row_bytes = *dtype_bytes(dy.type.dtype, width);
  const int32_t* ids = input_as<int32_t>(call, 1);
  float* out = output_as<float>(call, 0);
  for (int64_t t = 0; t < tokens; ++t) CHECK(ids[t] >= 0 && ids[t] < vocab, "an id is outside the table");
  call.threads->parallel_for(vocab, 64, [&](Range range) {
    std::fill(out + range.begin * width, out + range.end * width, 0.0f);
    for (int64_t t = 0; t < tokens; ++t) {
      if (ids[t] < range.begin || ids[t] >= range.end) continue;
      add_row(dy.type.dtype, dy.data + t * row_bytes, width, out + ids[t] * width);
    }
  });
}

}  // namespace

const KernelDef& embedding_grad_rows_kernel() {
  static constexpr KernelDef def{
      .op = "embedding_grad", .name = "embedding_grad_rows", .serves = serves_vector_dtypes, .run = run};
  return def;
}

}  // namespace tenon
