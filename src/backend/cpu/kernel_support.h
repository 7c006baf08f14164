// Small things that the kernels of this room share: typed access to tensors and common predicates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/threads.h"
#include "device/kernel.h"

namespace tenon {

template <typename T>
const T* input_as(const KernelCall& call, size_t index) {
  return reinterpret_cast<const T*>(call.inputs[index].data);
}
template <typename T>
T* output_as(const KernelCall& call, size_t index) {
  return reinterpret_cast<T*>(call.outputs[index].data);
}

// The dtypes that vector kernels read and write directly.
inline bool is_vector_dtype(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16;
}

// Whether the second operand of a product is rounded to the first's dtype. Values of blocks stay exact.
inline bool rounds_second(DType a, DType b) {
  return a == DType::bf16 && b != DType::bf16 && !is_block_quantised(b);
}

// Every input and output is f32 or bf16, integers apart.
inline bool has_vector_dtypes(std::span<const Type> types) {
  return std::all_of(types.begin(), types.end(), [](const Type& type) {
    return is_vector_dtype(type.dtype) || type.dtype == DType::i32;
  });
}
inline bool serves_vector_dtypes(const OpSite& site, const DeviceFacts& facts) {
  return facts.kind == DeviceKind::cpu && has_vector_dtypes(site.inputs) && has_vector_dtypes(site.outputs);
}
inline bool serves_all(const OpSite&, const DeviceFacts& facts) {
  return facts.kind == DeviceKind::cpu;
}

// Elements that one thread takes at a time in element-wise loops: a few pages, and whole vectors.
inline constexpr int64_t kElementGrain = 4096;

}  // namespace tenon
