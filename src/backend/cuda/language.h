// The language that the kernels of this room are written in: CUDA C++, or, where TENON_CUDA_EMULATED is set,
// plain C++ that runs the same source on the host, thread by thread, so that kernels are tested without a GPU
// (backend/cuda/emulator.h). Kernels use what both offer: block and thread indices, __syncthreads, shuffles
// among a whole warp, shared memory, and the matrix loads and product of tensor cores below.
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

// Four 8 x 8 matrices of halves from shared memory (ldmatrix of the PTX manual): lane L gives the address of
// row L % 8 of matrix L / 8 and receives, of each, columns 2t and 2t + 1 of row L / 4, with t = L % 4.
__device__ inline void load_matrices(uint32_t (&out)[4], const uint16_t* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address));
}
// The same, each matrix transposed: rows 2t and 2t + 1 of column L / 4.
__device__ inline void load_matrices_transposed(uint32_t (&out)[4], const uint16_t* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address));
}

// Starts copying 16 bytes to shared memory, or writing zeros where there is nothing to copy.
__device__ inline void copy_async(uint16_t* to, const uint16_t* from, bool exists) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = exists ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(address), "l"(from), "r"(bytes)
               : "memory");
}
// Ends a group of copies; waits until at most `kLeft` groups of this thread are on their way.
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;" : : : "memory");
}
template <int kLeft>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kLeft) : "memory");
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
