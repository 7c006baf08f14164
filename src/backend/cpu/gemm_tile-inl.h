// The innermost tile of a matrix product, kSliver x kPanel sums in registers, and what is done with the sums.
// Included once per Highway target.
#if defined(TENON_BACKEND_CPU_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_GEMM_TILE_INL_H_
#undef TENON_BACKEND_CPU_GEMM_TILE_INL_H_
#else
#define TENON_BACKEND_CPU_GEMM_TILE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "backend/cpu/gemm_pack-inl.h"
#include "backend/cpu/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// tile[i, j] = sum over p < depth of a[p, i] * b[p, j]; a is a packed sliver, b a packed panel.
HWY_INLINE void multiply_packed(int64_t depth, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                                float* HWY_RESTRICT tile) {
  const DF d;
  VF sums[kSliver][2];
#pragma GCC unroll 12
  for (int i = 0; i < kSliver; ++i) sums[i][0] = sums[i][1] = hn::Zero(d);
  for (int64_t p = 0; p < depth; ++p) {
    const VF b0 = hn::Load(d, b), b1 = hn::Load(d, b + kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < kSliver; ++i) {
      const VF value = hn::Set(d, a[i]);
      sums[i][0] = hn::MulAdd(value, b0, sums[i][0]);
      sums[i][1] = hn::MulAdd(value, b1, sums[i][1]);
    }
    a += kSliver;
    b += kPanel;
  }
#pragma GCC unroll 12
  for (int i = 0; i < kSliver; ++i) {
    hn::Store(sums[i][0], d, tile + i * kPanel);
    hn::Store(sums[i][1], d, tile + i * kPanel + kLanes);
  }
}

// The same with a's rows where they lie, `stride` floats apart: for products with few panels, where packing a
// would cost as much as multiplying it.
HWY_INLINE void multiply_rows(int64_t depth, const float* HWY_RESTRICT a, int64_t stride,
                              const float* HWY_RESTRICT b, float* HWY_RESTRICT tile) {
  const DF d;
  VF sums[kSliver][2];
#pragma GCC unroll 12
  for (int i = 0; i < kSliver; ++i) sums[i][0] = sums[i][1] = hn::Zero(d);
  for (int64_t p = 0; p < depth; ++p) {
    const VF b0 = hn::Load(d, b), b1 = hn::Load(d, b + kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < kSliver; ++i) {
      const VF value = hn::Set(d, a[i * stride + p]);
      sums[i][0] = hn::MulAdd(value, b0, sums[i][0]);
      sums[i][1] = hn::MulAdd(value, b1, sums[i][1]);
    }
    b += kPanel;
  }
#pragma GCC unroll 12
  for (int i = 0; i < kSliver; ++i) {
    hn::Store(sums[i][0], d, tile + i * kPanel);
    hn::Store(sums[i][1], d, tile + i * kPanel + kLanes);
  }
}

// Where the sums of one block of k go. Every pointer stands for element (0, 0) of the output block.
struct TileStore {
  float alpha = 1.0f;
  GemmMatrix before;  // what they are added to: the addend, the sums of earlier blocks, or nothing
  std::byte* out = nullptr;
  DType dtype = DType::f32;
  int64_t stride = 0;
};

template <typename Before, typename Out>
HWY_INLINE void store_tile(const float* HWY_RESTRICT tile, int64_t rows, int64_t columns, VF alpha,
                           const Before* before, int64_t before_stride, Out* out, int64_t out_stride) {
  constexpr int64_t kStep = static_cast<int64_t>(kLanes);
  for (int64_t i = 0; i < rows; ++i) {
    int64_t j = 0;
    for (; j + kStep <= columns; j += kStep) {
      const VF sum = load(tile + i * kPanel + j);
      const VF old = before ? load(before + i * before_stride + j) : hn::Zero(DF());
      store(hn::MulAdd(sum, alpha, old), out + i * out_stride + j);
    }
    if (j == columns) continue;
    const size_t rest = static_cast<size_t>(columns - j);
    const VF sum = load(tile + i * kPanel + j);
    const VF old = before ? load_part(before + i * before_stride + j, rest) : hn::Zero(DF());
    store_part(hn::MulAdd(sum, alpha, old), out + i * out_stride + j, rest);
  }
}

template <typename Out>
HWY_INLINE void store_tile_as(const float* tile, int64_t row, int64_t column, int64_t rows, int64_t columns,
                              const TileStore& to) {
  const VF alpha = hn::Set(DF(), to.alpha);
  Out* out = reinterpret_cast<Out*>(to.out) + row * to.stride + column;
  const int64_t offset = row * to.before.stride + column;
  if (to.before.data != nullptr && to.before.dtype == DType::bf16) {
    const bf16* before = reinterpret_cast<const bf16*>(to.before.data) + offset;
    store_tile(tile, rows, columns, alpha, before, to.before.stride, out, to.stride);
  } else {
    const float* before = to.before.data ? reinterpret_cast<const float*>(to.before.data) + offset : nullptr;
    store_tile(tile, rows, columns, alpha, before, to.before.stride, out, to.stride);
  }
}

HWY_INLINE void store_tile(const float* tile, int64_t row, int64_t column, int64_t rows, int64_t columns,
                           const TileStore& to) {
  if (to.dtype == DType::bf16) {
    store_tile_as<bf16>(tile, row, column, rows, columns, to);
  } else {
    store_tile_as<float>(tile, row, column, rows, columns, to);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
