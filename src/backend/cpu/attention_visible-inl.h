// Tiles of attention in f32 of which only what the mask leaves visible is multiplied: a sliver of queries
// against the panels of keys that one of them sees. Included once per Highway target.
#if defined(TENON_BACKEND_CPU_ATTENTION_VISIBLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_ATTENTION_VISIBLE_INL_H_
#undef TENON_BACKEND_CPU_ATTENTION_VISIBLE_INL_H_
#else
#define TENON_BACKEND_CPU_ATTENTION_VISIBLE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "backend/cpu/attention-inl.h"
#include "backend/cpu/attention_visible_sizes.h"
#include "backend/cpu/convert-inl.h"
#include "backend/cpu/gemm_tile-inl.h"
#include "backend/cpu/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// Columns of a row-major tile as a sliver: element (row, p) lies at p * stride + row.
struct ColumnSliver {
  const float* HWY_RESTRICT data;
  int64_t stride;
  HWY_INLINE float at(int row, int64_t p) const { return data[p * stride + row]; }
};

// Panel i of b begins at data + i * panel_stride; its rows are row_stride apart.
struct ColumnPanels {
  const float* data;
  int64_t panel_stride, row_stride;
};

// Rows [row, row + rows) of the output, at most a sliver of them, from its columns [first, last) on whole
// panels.
template <typename Sliver>
HWY_NOINLINE void multiply_sliver(Sliver a, ColumnPanels b, int64_t depth, int64_t row, int64_t rows,
                                  int64_t first, int64_t last, const TileStore& to) {
  for (int64_t column = first / kPanel * kPanel; column < last; column += kPanel) {
    multiply_and_store(depth, a, Panel{b.data + column / kPanel * b.panel_stride, b.row_stride}, row, column,
                       rows, std::min(kPanel, last - column), to);
  }
}

// The tokens of a tile of queries and a tile of keys, and which of them see each other.
struct VisibleTile {
  const AttentionSizes& sizes;
  const int32_t* sequence_begin;
  Range rows, keys;

  int64_t begin(int64_t t) const { return sizes.begin(sequence_begin[t], t); }
  // The keys of the tile that row i sees, from the tile's first on.
  Range keys_of(int64_t i) const {
    const int64_t t = rows.begin + i;
    const int64_t first = std::clamp<int64_t>(begin(t) - keys.begin, 0, keys.size());
    return {first, std::max(first, std::min(t + 1, keys.end) - keys.begin)};
  }
  // Those that one of the rows of the sliver from row i on sees.
  Range keys_of_sliver(int64_t i) const {
    return {keys_of(i).begin, keys_of(std::min(i + kSliver, rows.size()) - 1).end};
  }
  // The rows of the tile that see one of the keys of the sliver from key j on.
  Range rows_of_sliver(int64_t j) const {
    const int64_t last_key = std::min(keys.begin + j + kSliver, keys.end) - 1;
    Range seen{std::max<int64_t>(keys.begin + j - rows.begin, 0), rows.size()};
    while (seen.end > seen.begin && begin(rows.begin + seen.end - 1) > last_key) --seen.end;
    return seen;
  }
  bool empty() const { return keys.begin >= rows.end || begin(rows.begin) >= keys.end; }
};

// out[rows, keys] = a[rows, depth] · b, where visible; whole slivers and panels of `out` are written.
HWY_INLINE void multiply_visible(const VisibleTile& tile, const float* a, int64_t a_stride,
                                 const float* panels, int64_t depth, float* out) {
  const TileStore to = tile_store({out, kVisibleKeys}, 1.0f, false);
  for (int64_t row = 0; row < tile.rows.size(); row += kSliver) {
    const Range seen = tile.keys_of_sliver(row);
    if (seen.size() <= 0) continue;
    multiply_sliver(StridedSliver{a + row * a_stride, a_stride}, {panels, depth * kPanel, kPanel}, depth, row,
                    kSliver, seen.begin, round_up(seen.end, kPanel), to);
  }
}

// out[rows, columns] += weights[rows, keys] · b[keys, columns], where visible; hidden weights are zero.
HWY_INLINE void add_visible_keys(const VisibleTile& tile, const float* weights, const float* b,
                                 int64_t b_stride, int64_t columns, F32Tile out) {
  const TileStore to = tile_store(out, 1.0f, true);
  for (int64_t row = 0; row < tile.rows.size(); row += kSliver) {
    const Range seen = tile.keys_of_sliver(row);
    if (seen.size() <= 0) continue;
    multiply_sliver(StridedSliver{weights + row * kVisibleKeys + seen.begin, kVisibleKeys},
                    {b + seen.begin * b_stride, kPanel, b_stride}, seen.size(), row,
                    std::min(kSliver, tile.rows.size() - row), 0, columns, to);
  }
}

// out[keys, columns] += weights[rows, keys]^T · b[rows, columns], where visible; hidden weights are zero.
HWY_INLINE void add_visible_rows(const VisibleTile& tile, const float* weights, const float* b,
                                 int64_t b_stride, int64_t columns, F32Tile out) {
  const TileStore to = tile_store(out, 1.0f, true);
  for (int64_t key = 0; key < tile.keys.size(); key += kSliver) {
    const Range seen = tile.rows_of_sliver(key);
    if (seen.size() <= 0) continue;
    multiply_sliver(ColumnSliver{weights + seen.begin * kVisibleKeys + key, kVisibleKeys},
                    {b + seen.begin * b_stride, kPanel, b_stride}, seen.size(), key,
                    std::min(kSliver, tile.keys.size() - key), 0, columns, to);
  }
}

HWY_INLINE float dot(const float* a, const float* b, int64_t count) {
  constexpr int64_t kStep = static_cast<int64_t>(kLanes);
  VF sum = hn::Zero(DF());
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) sum = hn::MulAdd(load(a + i), load(b + i), sum);
  if (i < count) {
    const size_t rest = static_cast<size_t>(count - i);
    sum = hn::MulAdd(load_part(a + i, rest), load_part(b + i, rest), sum);
  }
  return sum_of(sum);
}

// Rows `tokens` of one head as f32, `stride` floats apart.
HWY_INLINE void copy_head(const TensorView& tensor, int64_t head, Range tokens, int64_t stride, float* out) {
  const GemmMatrix rows = head_of(tensor, head);
  const int64_t dim = tensor.type.shape[2];
  for (int64_t t = tokens.begin; t < tokens.end; ++t, out += stride) {
    widen_row(rows.dtype, matrix_row(rows, t), 0, dim, out);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
