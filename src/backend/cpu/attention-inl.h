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
#include "backend/cpu/gemm_bf16_pack-inl.h"
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

// How a kernel multiplies, in f32: a as slivers or, where it is a tile of its own, as it lies; b as panels.
struct F32Products {
  // Rows of a over `depth`, from `out` on; row `at` of them, a multiple of whole slivers.
  static HWY_INLINE void pack_rows(const GemmMatrix& a, Range rows, int64_t depth, float* out) {
    pack_a(a, rows, {0, depth}, out, depth * kSliver);
  }
  static HWY_INLINE float* row_at(float* rows, int64_t at, int64_t depth) { return rows + at * depth; }

  static HWY_INLINE void pack_columns(const GemmMatrix& b, Range columns, Range depth, float* out) {
    pack_b(b, columns, depth, false, out, depth.size() * kPanel);
  }

  template <typename Sliver>
  static HWY_INLINE void multiply(Sliver sliver_at, const float* panels, int64_t rows, int64_t columns,
                                  int64_t depth, const TileStore& to) {
    for (int64_t column = 0; column < columns; column += kPanel) {
      for (int64_t row = 0; row < rows; row += kSliver) {
        multiply_and_store(depth, sliver_at(row), Panel{panels + column * depth, kPanel}, row, column,
                           std::min(kSliver, rows - row), std::min(kPanel, columns - column), to);
      }
    }
  }

  // out[rows, columns] = alpha * packed rows · panels.
  static HWY_INLINE void multiply_rows(const float* a, const float* panels, int64_t rows, int64_t columns,
                                       int64_t depth, float alpha, F32Tile out) {
    const auto sliver = [&](int64_t row) { return PackedSliver{a + row * depth}; };
    multiply(sliver, panels, rows, columns, depth, tile_store(out, alpha, false));
  }

  // out[rows, columns] += a · panels; rows of a up to whole slivers are read.
  static HWY_INLINE void add_product(F32Tile a, const float* panels, int64_t rows, int64_t columns,
                                     int64_t depth, F32Tile out) {
    const auto sliver = [&](int64_t row) { return StridedSliver{a.data + row * a.stride, a.stride}; };
    multiply(sliver, panels, rows, columns, depth, tile_store(out, 1.0f, true));
  }
};

// The same with both sides rounded to bf16 and multiplied in pairs (gemm_bf16_tile.h): a tile has kRows rows,
// of which those past the last are read and not stored.
struct Bf16PairProducts {
  static constexpr int64_t kRows = kBf16DotRows;
  static_assert(kRowTile % kRows == 0);

  static HWY_INLINE int64_t padded(int64_t depth) { return round_up(depth, 2); }

  static HWY_INLINE void pack_rows(const GemmMatrix& a, Range rows, int64_t depth, float* out) {
    pack_bf16_rows(a, rows, {0, depth}, round_up(rows.size(), kRows), padded(depth),
                   reinterpret_cast<uint16_t*>(out));
  }
  static HWY_INLINE float* row_at(float* rows, int64_t at, int64_t depth) {
    return rows + at * padded(depth) / 2;
  }

  static HWY_INLINE void pack_columns(const GemmMatrix& b, Range columns, Range depth, float* out) {
    pack_pairs(b, columns, depth, reinterpret_cast<uint32_t*>(out), panel_words(depth.size()));
  }
  static HWY_INLINE int64_t panel_words(int64_t depth) {
    return round_up(depth, kBf16DepthUnit) / 2 * kBf16PanelColumns;
  }

  static HWY_INLINE void multiply(const uint16_t* a, int64_t a_stride, const float* panels, int64_t rows,
                                  int64_t columns, int64_t depth, const TileStore& to) {
    HWY_ALIGN float sums[kRows * kBf16PanelColumns];
    const uint32_t* b = reinterpret_cast<const uint32_t*>(panels);
    for (int64_t column = 0; column < columns; column += kBf16PanelColumns, b += panel_words(depth)) {
      for (int64_t row = 0; row < rows; row += kRows) {
        const Bf16Segment segment{a + row * a_stride, a_stride, b, padded(depth)};
        multiply_bf16_pairs({&segment, 1}, sums);
        store_tile(sums, kBf16PanelColumns, row, column, std::min(kRows, rows - row),
                   std::min(kBf16PanelColumns, columns - column), to);
      }
    }
  }

  static HWY_INLINE void multiply_rows(const float* a, const float* panels, int64_t rows, int64_t columns,
                                       int64_t depth, float alpha, F32Tile out) {
    multiply(reinterpret_cast<const uint16_t*>(a), padded(depth), panels, rows, columns, depth,
             tile_store(out, alpha, false));
  }

  // a has kColumnTile columns, zeros from `depth` on.
  static HWY_INLINE void add_product(F32Tile a, const float* panels, int64_t rows, int64_t columns,
                                     int64_t depth, F32Tile out) {
    HWY_ALIGN bf16 narrow[kRowTile * kColumnTile];
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < kColumnTile; j += static_cast<int64_t>(kLanes)) {
        store(load(a.data + i * a.stride + j), narrow + i * kColumnTile + j);
      }
    }
    multiply(reinterpret_cast<const uint16_t*>(narrow), kColumnTile, panels, rows, columns, depth,
             tile_store(out, 1.0f, true));
  }
};

// f(vector, index of its first lane) over kColumnTile elements, in place.
template <typename F>
HWY_INLINE void each_column(float* row, F f) {
  for (int64_t j = 0; j < kColumnTile; j += static_cast<int64_t>(kLanes)) store(f(load(row + j), j), row + j);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
