// Cutting and joining columns: rows are copied as they are; only fold_columns adds.
#include <cstring>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {
namespace {

constexpr int64_t kRowGrain = 16;

int64_t rows_of(const Type& type) {
  const int64_t width = type.shape[-1];
  return width == 0 ? 0 : type.elements() / width;
}

int64_t row_bytes(const Type& type, int64_t columns) {
  return *dtype_bytes(type.dtype, columns);
}

void slice(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &out = call.outputs[0];
  const int64_t from = row_bytes(x.type, x.type.shape[-1]), to = row_bytes(out.type, out.type.shape[-1]);
  const int64_t begin = row_bytes(x.type, call.attrs->integer("begin"));
  call.threads->parallel_for(rows_of(out.type), kRowGrain, [&](Range range) {
    for (int64_t r = range.begin; r < range.end; ++r)
      std::memcpy(out.data + r * to, x.data + r * from + begin, static_cast<size_t>(to));
  });
}

void pad(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &out = call.outputs[0];
  const int64_t from = row_bytes(x.type, x.type.shape[-1]), to = row_bytes(out.type, out.type.shape[-1]);
  const int64_t begin = row_bytes(x.type, call.attrs->integer("begin"));
  call.threads->parallel_for(rows_of(out.type), kRowGrain, [&](Range range) {
    for (int64_t r = range.begin; r < range.end; ++r) {
      std::memset(out.data + r * to, 0, static_cast<size_t>(to));
      std::memcpy(out.data + r * to + begin, x.data + r * from, static_cast<size_t>(from));
    }
  });
}

void concat(const KernelCall& call) {
  const TensorView& out = call.outputs[0];
  const int64_t to = row_bytes(out.type, out.type.shape[-1]);
  call.threads->parallel_for(rows_of(out.type), kRowGrain, [&](Range range) {
    int64_t at = 0;
    for (const TensorView& x : call.inputs) {
      const int64_t from = row_bytes(x.type, x.type.shape[-1]);
      for (int64_t r = range.begin; r < range.end; ++r)
        std::memcpy(out.data + r * to + at, x.data + r * from, static_cast<size_t>(from));
      at += from;
    }
  });
}

void repeat(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &out = call.outputs[0];
  const int64_t from = row_bytes(x.type, x.type.shape[-1]), to = row_bytes(out.type, out.type.shape[-1]);
  call.threads->parallel_for(rows_of(out.type), kRowGrain, [&](Range range) {
    for (int64_t r = range.begin; r < range.end; ++r) {
      for (int64_t at = 0; at < to; at += from)
        std::memcpy(out.data + r * to + at, x.data + r * from, static_cast<size_t>(from));
    }
  });
}

void fold(const KernelCall& call) {
  const TensorView &x = call.inputs[0], &out = call.outputs[0];
  const int64_t wide = x.type.shape[-1], width = out.type.shape[-1], bytes = row_bytes(out.type, 1);
  constexpr int64_t kPart = 512;
  call.threads->parallel_for(rows_of(out.type), kRowGrain, [&](Range range) {
    float sum[kPart], part[kPart];
    for (int64_t r = range.begin; r < range.end; ++r) {
      for (int64_t j = 0; j < width; j += kPart) {
        const int64_t count = std::min(kPart, width - j);
        std::fill_n(sum, count, 0.0f);
        for (int64_t at = j; at < wide; at += width) {
          widen_to_f32(x.type.dtype, x.data, r * wide + at, count, part);
          for (int64_t i = 0; i < count; ++i) sum[i] += part[i];
        }
        round_from_f32(out.type.dtype, sum, count, out.data + (r * width + j) * bytes);
      }
    }
  });
}

void copy_all(const KernelCall& call) {
  if (call.outputs[0].data == call.inputs[0].data) return;
  std::memcpy(call.outputs[0].data, call.inputs[0].data, static_cast<size_t>(call.outputs[0].type.bytes()));
}

bool moves(const OpSite& site, const DeviceFacts& facts) {
  return facts.kind == DeviceKind::cpu && !is_block_quantised(site.inputs[0].dtype);
}

}  // namespace

const KernelDef& slice_columns_rows_kernel() {
  static constexpr KernelDef def{
      .op = "slice_columns", .name = "slice_columns_rows", .serves = moves, .run = slice};
  return def;
}
const KernelDef& pad_columns_rows_kernel() {
  static constexpr KernelDef def{
      .op = "pad_columns", .name = "pad_columns_rows", .serves = moves, .run = pad};
  return def;
}
const KernelDef& concat_columns_rows_kernel() {
  static constexpr KernelDef def{
      .op = "concat_columns", .name = "concat_columns_rows", .serves = moves, .run = concat};
  return def;
}
const KernelDef& repeat_columns_rows_kernel() {
  static constexpr KernelDef def{
      .op = "repeat_columns", .name = "repeat_columns_rows", .serves = moves, .run = repeat};
  return def;
}
const KernelDef& fold_columns_rows_kernel() {
  static constexpr KernelDef def{
      .op = "fold_columns", .name = "fold_columns_rows", .serves = serves_vector_dtypes, .run = fold};
  return def;
}
const KernelDef& detach_copy_kernel() {
  static constexpr KernelDef def{.op = "detach", .name = "detach_copy", .serves = moves, .run = copy_all};
  return def;
}

}  // namespace tenon
