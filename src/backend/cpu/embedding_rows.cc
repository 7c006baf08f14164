// embedding: each row is widened and rounded, or copied where the dtypes agree.
#include <cstring>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernel_support.h"
#include "base/check.h"

namespace tenon {
namespace {

constexpr int64_t kPart = 256;  // whole blocks of every dtype

bool serves(const OpSite& site, const DeviceFacts& facts) {
  const DType table = site.inputs[0].dtype, out = site.outputs[0].dtype;
  return facts.kind == DeviceKind::cpu && (table == out || (table != DType::f64 && out != DType::f64));
}

void convert_row(const Type& table, const std::byte* row, DType dtype, std::byte* out) {
  const int64_t width = table.shape[1], bytes = *dtype_bytes(dtype, 1);
  float part[kPart];
  for (int64_t i = 0; i < width; i += kPart) {
    const int64_t count = std::min(kPart, width - i);
    widen_to_f32(table.dtype, row, i, count, part);
    round_from_f32(dtype, part, count, out + i * bytes);
  }
}

void run(const KernelCall& call) {
  const TensorView &table = call.inputs[0], &out = call.outputs[0];
  const int64_t vocab = table.type.shape[0], width = table.type.shape[1];
  const int64_t table_row = *dtype_bytes(table.type.dtype, width),
                out_row = *dtype_bytes(out.type.dtype, width);
  const int32_t* ids = input_as<int32_t>(call, 1);
  call.threads->parallel_for(out.type.shape[0], 8, [&](Range range) {
    for (int64_t t = range.begin; t < range.end; ++t) {
      CHECK(ids[t] >= 0 && ids[t] < vocab, "an id is outside the table");
      const std::byte* row = table.data + ids[t] * table_row;
      std::byte* to = out.data + t * out_row;
      if (table.type.dtype == out.type.dtype) {
        std::memcpy(to, row, static_cast<size_t>(out_row));
      } else {
        convert_row(table.type, row, out.type.dtype, to);
      }
    }
  });
}

}  // namespace

const KernelDef& embedding_rows_kernel() {
  static constexpr KernelDef def{.op = "embedding", .name = "embedding_rows", .serves = serves, .run = run};
  return def;
}

}  // namespace tenon
