// Products of attention tiles, on the tile kernel of the matrix product. Included once per Highway target.
#if defined(TENON_BACKEND_CPU_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_ATTENTION_INL_H_
#undef TENON_BACKEND_CPU_ATTENTION_INL_H_
#else
#define TENON_BACKEND_CPU_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "backend/cpu/attention_sizes.h"
#include "backend/cpu/gemm_tile-inl.h"
#include "backend/cpu/math-inl.h"
#include "backend/cpu/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// One head of a tensor [tokens, heads, dim], as a matrix of tokens x dim.
HWY_INLINE GemmMatrix head_of(const TensorView& tensor, int64_t head, bool transposed = false) {
  const int64_t dim = tensor.type.shape[2];
  return {tensor.data + head * dim * (tensor.type.dtype == DType::bf16 ? 2 : 4), tensor.type.dtype,
          tensor.type.shape[1] * dim, transposed};
}

struct F32Tile {
  float* data;
  int64_t stride;
};

HWY_INLINE TileStore tile_store(F32Tile out, float alpha, bool add) {
  TileStore to;
  to.alpha = alpha;
  to.out = reinterpret_cast<std::byte*>(out.data);
  to.stride = out.stride;
  if (add) to.before = {to.out, DType::f32, out.stride};
  return to;
}

// out[rows, columns] = alpha * slivers · panels, both packed over `depth`.
HWY_INLINE void multiply_slivers(const float* slivers, const float* panels, int64_t rows, int64_t columns,
                                 int64_t depth, float alpha, F32Tile out) {
  const TileStore to = tile_store(out, alpha, false);
  for (int64_t column = 0; column < columns; column += kPanel) {
    for (int64_t row = 0; row < rows; row += kSliver) {
      multiply_and_store(depth, PackedSliver{slivers + row * depth}, panels + column * depth, row, column,
                         std::min(kSliver, rows - row), std::min(kPanel, columns - column), to);
    }
  }
}

// out[rows, columns] += a · panels, a row-major over `depth`; rows of a up to whole slivers are read.
HWY_INLINE void add_rows_product(F32Tile a, const float* panels, int64_t rows, int64_t columns, int64_t depth,
                                 F32Tile out) {
  const TileStore to = tile_store(out, 1.0f, true);
  for (int64_t column = 0; column < columns; column += kPanel) {
    for (int64_t row = 0; row < rows; row += kSliver) {
      multiply_and_store(depth, StridedSliver{a.data + row * a.stride, a.stride}, panels + column * depth,
                         row, column, std::min(kSliver, rows - row), std::min(kPanel, columns - column), to);
    }
  }
}

// f(vector, index of its first lane) over kColumnTile elements, in place.
template <typename F>
HWY_INLINE void each_column(float* row, F f) {
  for (int64_t j = 0; j < kColumnTile; j += static_cast<int64_t>(kLanes)) store(f(load(row + j), j), row + j);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
