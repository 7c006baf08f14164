// Tensors as kernels see them: an address and a dtype, elements read as f32 and written rounded once. A
// branch on the dtype is the same for every thread, so one kernel serves all plain dtypes at the cost of a
// few instructions.
#pragma once

#include <cstddef>

#include "backend/cuda/language.h"
#include "base/dtype.h"
#include "device/kernel.h"

namespace tenon::cuda {

struct Tensor {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
};

inline Tensor tensor_of(const TensorView& view) {
  return {view.data, view.type.dtype};
}
inline Tensor input(const KernelCall& call, size_t index) {
  return tensor_of(call.inputs[index]);
}
inline Tensor output(const KernelCall& call, size_t index) {
  return tensor_of(call.outputs[index]);
}
template <typename T>
const T* input_as(const KernelCall& call, size_t index) {
  return reinterpret_cast<const T*>(call.inputs[index].data);
}
template <typename T>
T* output_as(const KernelCall& call, size_t index) {
  return reinterpret_cast<T*>(call.outputs[index].data);
}

__device__ inline float load(const Tensor& t, int64_t i) {
  if (t.dtype == DType::f32) return reinterpret_cast<const float*>(t.data)[i];
  const uint16_t bits = reinterpret_cast<const uint16_t*>(t.data)[i];
  return t.dtype == DType::bf16 ? bf16_value(bits) : f16_value(bits);
}

__device__ inline void store(const Tensor& t, int64_t i, float value) {
  if (t.dtype == DType::f32) {
    reinterpret_cast<float*>(t.data)[i] = value;
  } else {
    reinterpret_cast<uint16_t*>(t.data)[i] = t.dtype == DType::bf16 ? bf16_bits(value) : f16_bits(value);
  }
}

// Elements that a thread takes at a time: 16 bytes of halves.
inline constexpr int kVector = 8;

struct alignas(16) Words {
  uint32_t word[4];
};

__device__ inline float as_float(uint32_t bits) {
#ifdef TENON_CUDA_EMULATED
  return std::bit_cast<float>(bits);
#else
  return __uint_as_float(bits);
#endif
}
__device__ inline uint32_t as_bits(float value) {
#ifdef TENON_CUDA_EMULATED
  return std::bit_cast<uint32_t>(value);
#else
  return __float_as_uint(value);
#endif
}

// kVector elements from i on, where i is a multiple of kVector and the tensor starts at a multiple of 16
// bytes.
__device__ inline void load_vector(const Tensor& t, int64_t i, float (&out)[kVector]) {
  if (t.dtype == DType::f32) {
    const Words* from = reinterpret_cast<const Words*>(t.data) + i / 4;
    const Words low = from[0], high = from[1];
    for (int e = 0; e < 4; ++e) {
      out[e] = as_float(low.word[e]);
      out[e + 4] = as_float(high.word[e]);
    }
    return;
  }
  const Words words = reinterpret_cast<const Words*>(t.data)[i / kVector];
  for (int e = 0; e < 4; ++e) {
    const auto low = static_cast<uint16_t>(words.word[e]), high = static_cast<uint16_t>(words.word[e] >> 16);
    out[2 * e] = t.dtype == DType::bf16 ? bf16_value(low) : f16_value(low);
    out[2 * e + 1] = t.dtype == DType::bf16 ? bf16_value(high) : f16_value(high);
  }
}

__device__ inline uint32_t pack_halves(DType dtype, float low, float high) {
  const bool bf16 = dtype == DType::bf16;
  const uint32_t first = bf16 ? bf16_bits(low) : f16_bits(low);
  const uint32_t second = bf16 ? bf16_bits(high) : f16_bits(high);
  return first | second << 16;
}

__device__ inline void store_vector(const Tensor& t, int64_t i, const float (&in)[kVector]) {
  if (t.dtype == DType::f32) {
    Words low, high;
    for (int e = 0; e < 4; ++e) {
      low.word[e] = as_bits(in[e]);
      high.word[e] = as_bits(in[e + 4]);
    }
    Words* to = reinterpret_cast<Words*>(t.data) + i / 4;
    to[0] = low;
    to[1] = high;
    return;
  }
  Words words;
  for (int e = 0; e < 4; ++e) words.word[e] = pack_halves(t.dtype, in[2 * e], in[2 * e + 1]);
  reinterpret_cast<Words*>(t.data)[i / kVector] = words;
}

}  // namespace tenon::cuda
