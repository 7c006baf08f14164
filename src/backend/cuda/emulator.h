// Runs CUDA kernels on the host: every thread of a block is a fiber, blocks run one after the other. Barriers
// and warp shuffles behave as on a device whose warps run in lockstep; a barrier that not every thread
// reaches aborts. It shows wrong arithmetic, wrong indices and missing writes (with an address sanitizer, any
// access outside of a buffer), not races. For tests; included through backend/cuda/language.h.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/function_ref.h"

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

using cudaStream_t = void*;

namespace tenon::cuda::emulator {

extern dim3 thread_index, block_index, block_extent, grid_extent;

// Runs `body` once for each thread of each block.
void launch(dim3 grid, dim3 block, size_t shared_bytes, FunctionRef<void()> body);

void* shared_memory();
void synchronise_block();
// Publishes `bytes` (at most 64) of this lane to its warp, waits for all of it, and returns the table of what
// each lane published, 64 bytes a lane.
const std::byte* exchange(const void* value, size_t bytes);
int lane();

template <typename T>
T shuffle(T value, int from) {
  const std::byte* table = exchange(&value, sizeof(T));
  T out;
  std::memcpy(&out, table + 64 * (from & 31), sizeof(T));
  return out;
}

}  // namespace tenon::cuda::emulator

#define threadIdx ::tenon::cuda::emulator::thread_index
#define blockIdx ::tenon::cuda::emulator::block_index
#define blockDim ::tenon::cuda::emulator::block_extent
#define gridDim ::tenon::cuda::emulator::grid_extent

inline void __syncthreads() {
  tenon::cuda::emulator::synchronise_block();
}
inline void __syncwarp(unsigned = 0) {
  tenon::cuda::emulator::exchange(nullptr, 0);
}
template <typename T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return tenon::cuda::emulator::shuffle(value, tenon::cuda::emulator::lane() ^ mask);
}
template <typename T>
T __shfl_sync(unsigned, T value, int from) {
  return tenon::cuda::emulator::shuffle(value, from);
}

namespace tenon::cuda {

void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);

void load_matrices(uint32_t (&out)[4], const uint16_t* row);
void load_matrices_transposed(uint32_t (&out)[4], const uint16_t* row);

inline void copy_async(uint16_t* to, const uint16_t* from, bool exists) {
  if (exists) {
    std::memcpy(to, from, 16);
  } else {
    std::memset(to, 0, 16);
  }
}
inline void commit_copies() {}
template <int kLeft>
void wait_for_copies() {}

[[noreturn]] inline void stop() {
  std::abort();
}

#define TENON_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(::tenon::cuda::emulator::shared_memory())

}  // namespace tenon::cuda
