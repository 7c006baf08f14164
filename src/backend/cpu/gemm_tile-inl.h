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
#include <type_traits>

#include "backend/cpu/gemm_pack-inl.h"
#include "backend/cpu/simd-inl.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// Reads of a sliver of a: packed, or its rows where they lie (for products with few panels, where packing a
// would cost as much as multiplying it).
struct PackedSliver {
  const float* HWY_RESTRICT data;
  HWY_INLINE float at(int row, int64_t p) const { return data[p * kSliver + row]; }
};
struct StridedSliver {
  const float* HWY_RESTRICT data;
  int64_t stride;
  HWY_INLINE float at(int row, int64_t p) const { return data[row * stride + p]; }
};

// kPanel columns of b: packed, or where they lie (`stride` floats from row to row). While a packed one is
// multiplied, each round of steps of k asks for the line at `ahead`, for the second cache, which moves on by
// `ahead_step` floats a step: many lines at once would hold up the loads of a.
struct Panel {
  const float* HWY_RESTRICT data;
  int64_t stride;
  const float* ahead = data;
  int64_t ahead_step = 0;
};

using TileSums = VF[kSliver][2];

HWY_INLINE void clear(TileSums& sums) {
#pragma GCC unroll 12
  for (int i = 0; i < kSliver; ++i) sums[i][0] = sums[i][1] = hn::Zero(DF());
}

// Adds kSteps steps of k, from p on; b is the panel's row p.
template <int64_t kSteps, typename Sliver>
HWY_INLINE void add_steps(Sliver a, int64_t p, const float* HWY_RESTRICT b, int64_t stride, TileSums& sums) {
#pragma GCC unroll 4
  for (int64_t step = 0; step < kSteps; ++step, ++p, b += stride) {
    const VF b0 = hn::LoadU(DF(), b), b1 = hn::LoadU(DF(), b + kLanes);
#pragma GCC unroll 12
    for (int i = 0; i < kSliver; ++i) {
      const VF value = hn::Set(DF(), a.at(i, p));
      sums[i][0] = hn::MulAdd(value, b0, sums[i][0]);
      sums[i][1] = hn::MulAdd(value, b1, sums[i][1]);
    }
  }
}

// sums[i, j] = sum over p < depth of a[i, p] * b[p, j] for a sliver and a panel; finish(i, left, right) takes
// each row of sums.
template <typename Sliver, typename Finish>
HWY_INLINE void multiply_tile(int64_t depth, Sliver a, Panel panel, Finish finish) {
  TileSums sums;
  clear(sums);
  const float* HWY_RESTRICT b = panel.data;
  for (int64_t p = 0; p < depth; ++p, b += panel.stride) add_steps<1>(a, p, b, panel.stride, sums);
#pragma GCC unroll 12
  for (int i = 0; i < kSliver; ++i) finish(i, sums[i][0], sums[i][1]);
}

constexpr int64_t kPackedDepth = 64;  // from here on sums may go through memory on their way

// The same for packed operands, where most of the time goes; the sums go to `tile`, kPanel floats a row. Not
// inlined, since it needs all registers.
inline HWY_NOINLINE void multiply_packed(int64_t depth, PackedSliver a, Panel panel, float* tile) {
  constexpr int64_t kSteps = kLanes == 16 ? 2 : 4;
  TileSums sums;
  clear(sums);
  const float* HWY_RESTRICT b = panel.data;
  // Steps that fill no round come first: behind the rounds they would cost those registers.
  int64_t p = 0;
  for (; p < depth % kSteps; ++p, b += kPanel) add_steps<1>(a, p, b, kPanel, sums);
  for (; p < depth; p += kSteps, b += kSteps * kPanel) {
    __builtin_prefetch(panel.ahead, 0, 2);
    panel.ahead += kSteps * panel.ahead_step;
    add_steps<kSteps>(a, p, b, kPanel, sums);
  }
#pragma GCC unroll 12
  for (int i = 0; i < kSliver; ++i) {
    store(sums[i][0], tile + i * kPanel);
    store(sums[i][1], tile + i * kPanel + kLanes);
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

// Asks for the tile's part of the output, which the sums meet once they are done.
HWY_INLINE void prefetch_tile(int64_t row, int64_t column, int64_t rows, const TileStore& to) {
  const int64_t bytes = to.dtype == DType::bf16 ? 2 : 4;
  const std::byte* out = to.out + (row * to.stride + column) * bytes;
  for (int64_t i = 0; i < rows; ++i) hwy::Prefetch(out + i * to.stride * bytes);
}

template <typename Before, typename Out>
HWY_INLINE void store_tile(const float* HWY_RESTRICT tile, int64_t tile_stride, int64_t rows, int64_t columns,
                           VF alpha, const Before* before, int64_t before_stride, Out* out,
                           int64_t out_stride) {
  constexpr int64_t kStep = static_cast<int64_t>(kLanes);
  for (int64_t i = 0; i < rows; ++i) {
    int64_t j = 0;
    for (; j + kStep <= columns; j += kStep) {
      const VF sum = load(tile + i * tile_stride + j);
      const VF old = before ? load(before + i * before_stride + j) : hn::Zero(DF());
      store(hn::MulAdd(sum, alpha, old), out + i * out_stride + j);
    }
    if (j == columns) continue;
    const size_t rest = static_cast<size_t>(columns - j);
    const VF sum = load(tile + i * tile_stride + j);
    const VF old = before ? load_part(before + i * before_stride + j, rest) : hn::Zero(DF());
    store_part(hn::MulAdd(sum, alpha, old), out + i * out_stride + j, rest);
  }
}

template <typename Out>
HWY_INLINE void store_tile_as(const float* tile, int64_t tile_stride, int64_t row, int64_t column,
                              int64_t rows, int64_t columns, const TileStore& to) {
  const VF alpha = hn::Set(DF(), to.alpha);
  Out* out = reinterpret_cast<Out*>(to.out) + row * to.stride + column;
  const int64_t offset = row * to.before.stride + column;
  if (to.before.data != nullptr && to.before.dtype == DType::bf16) {
    const bf16* before = reinterpret_cast<const bf16*>(to.before.data) + offset;
    store_tile(tile, tile_stride, rows, columns, alpha, before, to.before.stride, out, to.stride);
  } else {
    const float* before = to.before.data ? reinterpret_cast<const float*>(to.before.data) + offset : nullptr;
    store_tile(tile, tile_stride, rows, columns, alpha, before, to.before.stride, out, to.stride);
  }
}

// Stores rows x columns of a tile whose rows lie `tile_stride` apart at (row, column) of the output block.
HWY_INLINE void store_tile(const float* tile, int64_t tile_stride, int64_t row, int64_t column, int64_t rows,
                           int64_t columns, const TileStore& to) {
  if (to.dtype == DType::bf16) {
    store_tile_as<bf16>(tile, tile_stride, row, column, rows, columns, to);
  } else {
    store_tile_as<float>(tile, tile_stride, row, column, rows, columns, to);
  }
}

// Element (row, column) of an operand that is not transposed; nothing stays nothing.
HWY_INLINE GemmMatrix shifted(GemmMatrix matrix, int64_t row, int64_t column) {
  if (matrix.data != nullptr) {
    matrix.data += (row * matrix.stride + column) * *dtype_bytes(matrix.dtype, 1);
  }
  return matrix;
}

// The store of one block of k for the output block at (row, column): sums of blocks before the last lie in
// the output where it is f32, else in `partial`. The tail belongs to the last block.
HWY_INLINE TileStore block_store(const Gemm& g, int64_t row, int64_t column, Range depth, float* partial,
                                 int64_t partial_stride) {
  TileStore to;
  to.alpha = g.alpha;
  const bool first = depth.begin == 0, last = depth.end == g.k;
  std::byte* out = g.out + (row * g.out_stride + column) * *dtype_bytes(g.out_dtype, 1);
  const bool in_output = g.out_dtype == DType::f32;
  const GemmMatrix sums = in_output
                              ? GemmMatrix{out, DType::f32, g.out_stride}
                              : GemmMatrix{reinterpret_cast<std::byte*>(partial), DType::f32, partial_stride};
  to.before = first ? shifted(g.addend, row, column) : sums;
  to.out = last ? out : const_cast<std::byte*>(sums.data);
  to.dtype = last ? g.out_dtype : DType::f32;
  to.stride = last ? g.out_stride : sums.stride;
  return to;
}

// Multiplies one tile and stores rows x columns of it at (row, column) of the output block. Whole tiles of
// f32 go straight from the registers.
template <typename Sliver>
HWY_INLINE void multiply_and_store(int64_t depth, Sliver a, Panel b, int64_t row, int64_t column,
                                   int64_t rows, int64_t columns, const TileStore& to) {
  prefetch_tile(row, column, rows, to);
  if constexpr (std::is_same_v<Sliver, PackedSliver>) {
    if (b.stride == kPanel && depth >= kPackedDepth) {
      HWY_ALIGN float tile[kSliver * kPanel];
      multiply_packed(depth, a, b, tile);
      store_tile(tile, kPanel, row, column, rows, columns, to);
      return;
    }
  }
  const bool plain = rows == kSliver && columns == kPanel && to.dtype == DType::f32;
  const VF alpha = hn::Set(DF(), to.alpha);
  float* out = reinterpret_cast<float*>(to.out) + row * to.stride + column;
  if (plain && to.before.data == nullptr) {
    multiply_tile(depth, a, b, [&](int i, VF left, VF right) HWY_ATTR {
      store(hn::Mul(left, alpha), out + i * to.stride);
      store(hn::Mul(right, alpha), out + i * to.stride + kLanes);
    });
  } else if (plain && to.before.dtype == DType::f32) {
    const float* before = reinterpret_cast<const float*>(to.before.data) + row * to.before.stride + column;
    multiply_tile(depth, a, b, [&](int i, VF left, VF right) HWY_ATTR {
      const float* old = before + i * to.before.stride;
      store(hn::MulAdd(left, alpha, load(old)), out + i * to.stride);
      store(hn::MulAdd(right, alpha, load(old + kLanes)), out + i * to.stride + kLanes);
    });
  } else {
    HWY_ALIGN float tile[kSliver * kPanel];
    multiply_tile(depth, a, b, [&](int i, VF left, VF right) HWY_ATTR {
      store(left, tile + i * kPanel);
      store(right, tile + i * kPanel + kLanes);
    });
    store_tile(tile, kPanel, row, column, rows, columns, to);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
