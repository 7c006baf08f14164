// The language that the kernels of this room are written in: CUDA C++, or, where TENON_CUDA_EMULATED is set,
// plain C++ that runs the same source on the host, thread by thread, so that kernels are tested without a GPU
// (backend/cuda/emulator.h). Kernels use what both offer: block and thread indices, __syncthreads, shuffles
// among a whole warp, shared memory and the tensor core product below.
#pragma once

#include <cstdint>

#ifdef TENON_CUDA_EMULATED
#include "backend/cuda/emulator.h"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#endif

#include "base/half.h"

namespace tenon::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kWholeWarp = 0xffffffffu;

#ifdef TENON_CUDA_EMULATED

inline float bf16_value(uint16_t bits) {
  return bf16_to_f32(bits);
}
inline uint16_t bf16_bits(float value) {
  return f32_to_bf16(value);
}
inline float f16_value(uint16_t bits) {
  return f16_to_f32(bits);
}
inline uint16_t f16_bits(float value) {
  return f32_to_f16(value);
}

#else

__device__ inline float bf16_value(uint16_t bits) {
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}
__device__ inline uint16_t bf16_bits(float value) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}
__device__ inline float f16_value(uint16_t bits) {
  return __half2float(__ushort_as_half(bits));
}
__device__ inline uint16_t f16_bits(float value) {
  return __half_as_ushort(__float2half_rn(value));
}

// d += a · b of one warp in the tensor cores, bf16 to f32: a 16 x 16, b 16 x 8, in the register layout of the
// PTX manual's mma.m16n8k16.
__device__ inline void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two 8 x 8 tiles of halves, transposed: lanes 0 to 15 give the addresses of their rows; this lane receives
// rows 2t and 2t + 1 of column lane / 4, with t = lane % 4 (ldmatrix of the PTX manual).
__device__ inline void load_matrices_transposed(uint32_t (&out)[2], const uint16_t* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(out[0]), "=r"(out[1])
               : "r"(address));
}

// Stops the kernel: an index is outside of its tensor. The run ends with an error that names the step.
__device__ inline void stop() {
  __trap();
}

#define TENON_DYNAMIC_SHARED(type, name)               \
  extern __shared__ __align__(16) char name##_bytes[]; \
  type* const name = reinterpret_cast<type*>(name##_bytes)

#endif

}  // namespace tenon::cuda
