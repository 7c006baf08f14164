// The two products of cached attention for a block of positions: queries by keys, and weights by values, each
// a tile of several rows and positions or columns in registers. Included once per Highway target.
#if defined(TENON_BACKEND_CPU_PAGED_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_PAGED_ATTENTION_TILES_INL_H_
#undef TENON_BACKEND_CPU_PAGED_ATTENTION_TILES_INL_H_
#else
#define TENON_BACKEND_CPU_PAGED_ATTENTION_TILES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "backend/cpu/paged_attention_sizes.h"
#include "backend/cpu/simd-inl.h"
#include "base/threads.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

constexpr int64_t kStep = static_cast<int64_t>(kLanes);
constexpr int kPositionsAtATime = 4;

// The sums of four vectors, in order.
HWY_INLINE void store_sums(const VF* v, float* out) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < kPositionsAtATime; ++i) out[i] = sum_of(v[i]);
#else
  const hn::RepartitionToWide<DF> pairs;
  const auto halves = [](VF a, VF b) HWY_ATTR {
    return hn::BitCast(hn::RepartitionToWide<DF>(),
                       hn::Add(hn::InterleaveLower(DF(), a, b), hn::InterleaveUpper(DF(), a, b)));
  };
  const auto a = halves(v[0], v[1]), b = halves(v[2], v[3]);
  const VF quarters = hn::Add(hn::BitCast(DF(), hn::InterleaveLower(pairs, a, b)),
                              hn::BitCast(DF(), hn::InterleaveUpper(pairs, a, b)));
  const hn::Half<DF> dh;
  const auto upper = hn::Add(hn::LowerHalf(dh, quarters), hn::UpperHalf(dh, quarters));
  if constexpr (kLanes == 8) {
    hn::StoreU(upper, dh, out);
  } else {
    const hn::Half<decltype(dh)> dq;
    hn::StoreU(hn::Add(hn::LowerHalf(dq, upper), hn::UpperHalf(dq, upper)), dq, out);
  }
#endif
}

// scores[r * kBlockPositions + i] = q_r · keys[i] for kRows rows and four keys, each in the same order
// whatever kRows is.
template <int kRows, typename T>
HWY_INLINE void score_tile(const float* q, int64_t q_stride, const T* const* keys, int64_t dim,
                           float* scores) {
  VF sums[kRows][kPositionsAtATime];
#pragma GCC unroll 16
  for (int i = 0; i < kRows * kPositionsAtATime; ++i) sums[i / 4][i % 4] = hn::Zero(DF());
  const auto add = [&](int64_t i, auto load_keys) HWY_ATTR {
#pragma GCC unroll 4
    for (int k = 0; k < kPositionsAtATime; ++k) {
      const VF key = load_keys(keys[k] + i);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sums[r][k] = hn::MulAdd(load(q + r * q_stride + i), key, sums[r][k]);
    }
  };
  int64_t i = 0;
  for (; i + kStep <= dim; i += kStep) add(i, [](const T* key) HWY_ATTR { return load(key); });
  if (const size_t rest = static_cast<size_t>(dim - i); rest > 0) {
    add(i, [rest](const T* key) HWY_ATTR { return load_part(key, rest); });
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) store_sums(sums[r], scores + r * kBlockPositions);
}

// The same for all positions of a block; the last ones are filled up with the last.
template <int kRows, typename T>
HWY_INLINE void score_rows(const float* q, int64_t q_stride, const T* const* keys, Range block, int64_t dim,
                           float* scores) {
  int64_t j = block.begin;
  for (; j + kPositionsAtATime <= block.end; j += kPositionsAtATime) {
    score_tile<kRows>(q, q_stride, keys + j, dim, scores + j);
  }
  if (j == block.end) return;
  float last[kRows * kBlockPositions];
  const T* last_keys[kPositionsAtATime];
  for (int k = 0; k < kPositionsAtATime; ++k) last_keys[k] = keys[std::min(j + k, block.end - 1)];
  score_tile<kRows>(q, q_stride, last_keys, dim, last);
  for (int r = 0; r < kRows; ++r) {
    std::copy_n(last + r * kBlockPositions, block.end - j, scores + r * kBlockPositions + j);
  }
}

// out_r[0 .. kColumns vectors) += sum over positions of p_r * value, for kRows rows; `lanes` of the last
// vector.
template <int kRows, int kColumns, typename T>
HWY_INLINE void add_values(const float* p, const T* const* values, Range block, int64_t column, size_t lanes,
                           float* out, int64_t out_stride) {
  const auto load_lanes = [lanes](const auto* from) HWY_ATTR {
    return kColumns > 1 || lanes == kLanes ? load(from) : load_part(from, lanes);
  };
  VF sums[kRows][kColumns];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) sums[r][c] = load_lanes(out + r * out_stride + column + c * kStep);
  }
  for (int64_t j = block.begin; j < block.end; ++j) {
    VF v[kColumns];
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) v[c] = load_lanes(values[j] + column + c * kStep);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const VF weight = hn::Set(DF(), p[r * kBlockPositions + j]);
#pragma GCC unroll 8
      for (int c = 0; c < kColumns; ++c) sums[r][c] = hn::MulAdd(weight, v[c], sums[r][c]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    float* row = out + r * out_stride + column;
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c) {
      if (kColumns > 1 || lanes == kLanes) {
        store(sums[r][c], row + c * kStep);
      } else {
        store_part(sums[r][c], row, lanes);
      }
    }
  }
}

// The same for all columns: as many at a time as leave enough chains of sums to hide their latency.
template <int kRows, typename T>
HWY_INLINE void add_all_values(const float* p, const T* const* values, Range block, int64_t columns,
                               float* out, int64_t out_stride) {
  constexpr int kColumns = kRows == 1 ? 8 : kRows == 2 ? 4 : 2;
  int64_t column = 0;
  for (; column + kColumns * kStep <= columns; column += kColumns * kStep) {
    add_values<kRows, kColumns>(p, values, block, column, kLanes, out, out_stride);
  }
  for (; column < columns; column += kStep) {
    const size_t lanes = static_cast<size_t>(std::min(kStep, columns - column));
    add_values<kRows, 1>(p, values, block, column, lanes, out, out_stride);
  }
}

// f(rows as a constant, first row) over all rows, four at a time.
template <typename F>
HWY_INLINE void each_row_group(int64_t rows, F f) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) f(std::integral_constant<int, 4>(), r);
  if (rows - r == 3) f(std::integral_constant<int, 3>(), r);
  if (rows - r == 2) f(std::integral_constant<int, 2>(), r);
  if (rows - r == 1) f(std::integral_constant<int, 1>(), r);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
