// What the kernels' table entries share: which sites they serve.
#pragma once

#include <algorithm>
#include <span>

#include "device/kernel.h"

namespace tenon::cuda {

// The plain dtypes that every kernel reads and writes.
inline bool is_plain(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16 || dtype == DType::i32;
}
inline bool all_plain(std::span<const Type> types) {
  return std::all_of(types.begin(), types.end(), [](const Type& type) { return is_plain(type.dtype); });
}
inline bool serves_plain(const OpSite& site, const DeviceFacts& facts) {
  return facts.kind == DeviceKind::cuda && all_plain(site.inputs) && all_plain(site.outputs);
}
// Input `index` may be block-quantised; the others are plain.
template <size_t index>
bool serves_number(const OpSite& site, const DeviceFacts& facts) {
  if (facts.kind != DeviceKind::cuda || !all_plain(site.outputs)) return false;
  for (size_t i = 0; i < site.inputs.size(); ++i) {
    const DType dtype = site.inputs[i].dtype;
    if (!is_plain(dtype) && !(i == index && is_block_quantised(dtype))) return false;
  }
  return true;
}

inline int64_t rows_of(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape[-1] == 0 ? 0 : shape.elements() / shape[-1];
}

}  // namespace tenon::cuda
