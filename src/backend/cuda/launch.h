// Launching a kernel, and sums over warps and blocks in a fixed order.
#pragma once

#include <algorithm>

#include "backend/cuda/tensor.h"
#include "base/checked_math.h"

namespace tenon::cuda {

// Shared memory that a block may have without asking for more.
inline constexpr size_t kPlainSharedBytes = 48 << 10;

// Launches on the call's stream. A grid without blocks launches nothing: the tensors are empty.
template <typename... Parameters, typename... Arguments>
void launch(const KernelCall& call, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
            Arguments... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
#ifdef TENON_CUDA_EMULATED
  (void)call;
  emulator::launch(grid, block, shared_bytes, [&] { kernel(arguments...); });
#else
  if (shared_bytes > kPlainSharedBytes) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
  }
  kernel<<<grid, block, shared_bytes, static_cast<cudaStream_t>(call.stream)>>>(arguments...);
#endif
}

inline constexpr int kThreads = 256;

// Blocks that cover `count` items.
inline unsigned blocks_for(int64_t count, int64_t per_block = kThreads) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

// The index of this thread in a grid of one axis.
__device__ inline int64_t thread_in_grid() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

template <typename T>
__device__ inline T warp_sum(T value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(kWholeWarp, value, offset);
  return value;
}
__device__ inline float warp_max(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, offset));
  }
  return value;
}

// The sum over a block of whole warps on one axis, given to every thread; `scratch` holds kWarp values and
// may be used again at once.
template <typename T>
__device__ inline T block_sum(T value, T* scratch) {
  value = warp_sum(value);
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  if (warps == 1) return value;
  __syncthreads();
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = value;
  __syncthreads();
  T total = scratch[0];
  for (int i = 1; i < warps; ++i) total += scratch[i];
  return total;
}
__device__ inline float block_max(float value, float* scratch) {
  value = warp_max(value);
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  if (warps == 1) return value;
  __syncthreads();
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = value;
  __syncthreads();
  float largest = scratch[0];
  for (int i = 1; i < warps; ++i) largest = fmaxf(largest, scratch[i]);
  return largest;
}

}  // namespace tenon::cuda
