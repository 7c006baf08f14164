#include "backend/cuda/plain_matmul.h"

#include "backend/cuda/launch.h"
#include "backend/cuda/quantised.h"

namespace tenon::cuda {
namespace {

constexpr int kTile = 64, kDepth = 16, kPerThread = 4, kSide = kTile / kPerThread;

__device__ inline float as_read_in(DType dtype, float value) {
  if (dtype == DType::bf16) return bf16_value(bf16_bits(value));
  if (dtype == DType::f16) return f16_value(f16_bits(value));
  return value;
}

// A block computes kTile x kTile of the output, each of its 256 threads 4 x 4.
__global__ void plain_matmul(PlainProduct p) {
  __shared__ float a_tile[kDepth][kTile + 1], b_tile[kDepth][kTile + 1];
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * kTile,
                column0 = static_cast<int64_t>(blockIdx.x) * kTile;
  const int thread_row = static_cast<int>(threadIdx.x) / kSide,
            thread_column = static_cast<int>(threadIdx.x) % kSide;
  float total[kPerThread][kPerThread] = {};
  for (int64_t k0 = 0; k0 < p.k; k0 += kDepth) {
    for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth; i += static_cast<int>(blockDim.x)) {
      const int depth = i % kDepth, at = i / kDepth;
      const int64_t k = k0 + depth, row = row0 + at, column = column0 + at;
      const bool in_a = k < p.k && row < p.m, in_b = k < p.k && column < p.n;
      a_tile[depth][at] = in_a ? load(p.a, p.trans_a ? k * p.m + row : row * p.k + k) : 0.0f;
      const float b = in_b ? load_number(p.b, p.trans_b ? column * p.k + k : k * p.n + column) : 0.0f;
      b_tile[depth][at] = as_read_in(p.a.dtype, b);
    }
    __syncthreads();
    for (int depth = 0; depth < kDepth; ++depth) {
      for (int i = 0; i < kPerThread; ++i) {
        for (int j = 0; j < kPerThread; ++j) {
          total[i][j] += a_tile[depth][thread_row + i * kSide] * b_tile[depth][thread_column + j * kSide];
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kPerThread; ++i) {
    for (int j = 0; j < kPerThread; ++j) {
      const int64_t row = row0 + thread_row + i * kSide, column = column0 + thread_column + j * kSide;
      if (row >= p.m || column >= p.n) continue;
      float value = p.alpha * total[i][j];
      if (p.addend.data != nullptr) value += load(p.addend, p.addend_is_row ? column : row * p.n + column);
      store(p.out, row * p.n + column, value);
    }
  }
}

}  // namespace

void launch_plain_matmul(const KernelCall& call, const PlainProduct& product) {
  launch(call, plain_matmul, dim3(blocks_for(product.n, kTile), blocks_for(product.m, kTile)), kSide * kSide,
         0, product);
}

}  // namespace tenon::cuda
