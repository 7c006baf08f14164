// The two products of cached attention for a block of positions: queries by keys, and weights by values, each
// a tile of several rows and positions or columns in registers. Both ask for the block that comes next while
// they go through theirs. Queries and sums of values are in the order of element_pairs-inl.h, padded with
// zeros. Included once per Highway target.
#if defined(TENON_BACKEND_CPU_PAGED_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_PAGED_ATTENTION_TILES_INL_H_
#undef TENON_BACKEND_CPU_PAGED_ATTENTION_TILES_INL_H_
#else
#define TENON_BACKEND_CPU_PAGED_ATTENTION_TILES_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "backend/cpu/element_pairs-inl.h"
#include "backend/cpu/paged_attention_sizes.h"
#include "backend/cpu/simd-inl.h"
#include "base/threads.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// The rows of a cache that a block of positions has, by position; those outside of `here` are not set.
template <typename T>
struct CacheRows {
  const T* rows[kBlockPositions];
  Range here;
};

template <typename T>
constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));  // elements of a cache line

constexpr bool kFewRegisters = kLanes < 16;

// sums[r][k] += q_r · keys[k] over one half of the elements from `at` on. Pointers are hidden from the
// compiler, which else keeps what both halves read in registers that it has not.
template <int kHalf, int kRows, int kKeys, typename T>
HWY_INLINE void add_scores(const float* q, int64_t q_stride, const T* const* keys, int64_t at,
                           VF (&sums)[kRows][kKeys]) {
  VF queries[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) queries[r] = load(q + r * q_stride);
  asm volatile("" : "+r"(at));
#pragma GCC unroll 4
  for (int k = 0; k < kKeys; ++k) {
    const VF key = load_half<kHalf>(keys[k] + at);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[r][k] = hn::MulAdd(queries[r], key, sums[r][k]);
  }
}

// scores[r * kBlockPositions + k] = q_r · keys[k] for kRows rows and kKeys keys, each in the same order
// whatever they are.
template <int kRows, int kKeys, typename T>
HWY_INLINE void score_tile(const float* q, int64_t q_stride, const T* const* keys, int64_t dim,
                           float* scores) {
  static_assert(kRows == 4 || kKeys == 4);
  VF sums[kRows][kKeys];
#pragma GCC unroll 16
  for (int i = 0; i < kRows * kKeys; ++i) sums[i / kKeys][i % kKeys] = hn::Zero(DF());
  int64_t i = 0;
  for (; i + kPairStep <= dim; i += kPairStep) {
    add_scores<0, kRows, kKeys>(q + i, q_stride, keys, i, sums);
    add_scores<1, kRows, kKeys>(q + i + kStep, q_stride, keys, i, sums);
  }
  if (const int64_t rest = dim - i; rest > 0) {
    T ends[kKeys][kPairStep];
    const T* rows[kKeys];
    for (int k = 0; k < kKeys; ++k) {
      store_two(load_two_part(keys[k] + i, rest), ends[k]);
      rows[k] = ends[k];
    }
    add_scores<0, kRows, kKeys>(q + i, q_stride, rows, 0, sums);
    add_scores<1, kRows, kKeys>(q + i + kStep, q_stride, rows, 0, sums);
  }
  if constexpr (kKeys == 4) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      store_sums(sums[r][0], sums[r][1], sums[r][2], sums[r][3], scores + r * kBlockPositions);
    }
  } else {
#pragma GCC unroll 4
    for (int k = 0; k < kKeys; ++k) {
      float of_rows[4];
      store_sums(sums[0][k], sums[1][k], sums[2][k], sums[3][k], of_rows);
      for (int r = 0; r < kRows; ++r) scores[r * kBlockPositions + k] = of_rows[r];
    }
  }
}

// The same for all positions of a block; the last ones are filled up with the last.
template <int kRows, typename T>
HWY_INLINE void score_rows(const float* q, int64_t q_stride, const CacheRows<T>& keys,
                           const CacheRows<T>& next, int64_t dim, float* scores) {
  constexpr int kKeys = kRows == 4 && kFewRegisters ? 2 : 4;
  const int64_t end = keys.here.end;
  int64_t j = keys.here.begin;
  for (; j + kKeys <= end; j += kKeys) {
    for (int k = 0; k < kKeys && next.here.begin <= j && j + kKeys <= next.here.end; ++k) {
      for (int64_t i = 0; i < dim; i += kLine<T>) hwy::Prefetch(next.rows[j + k] + i);
    }
    score_tile<kRows, kKeys>(q, q_stride, keys.rows + j, dim, scores + j);
  }
  if (j == end) return;
  float last[kRows * kBlockPositions];
  const T* last_keys[kKeys];
  for (int k = 0; k < kKeys; ++k) last_keys[k] = keys.rows[std::min(j + k, end - 1)];
  score_tile<kRows, kKeys>(q, q_stride, last_keys, dim, last);
  for (int r = 0; r < kRows; ++r) {
    std::copy_n(last + r * kBlockPositions, end - j, scores + r * kBlockPositions + j);
  }
}

// out_r[column .. + kPairs pairs of vectors) += sum over positions of p_r * value, for kRows rows.
template <int kRows, int kPairs, typename T, typename LoadTwo>
HWY_INLINE void add_values(const float* p, const CacheRows<T>& values, const CacheRows<T>& next,
                           int64_t column, LoadTwo load_values, float* out, int64_t out_stride) {
  VF sums[kRows][2 * kPairs];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < 2 * kPairs; ++c) sums[r][c] = load(out + r * out_stride + column + c * kStep);
  }
  for (int64_t j = values.here.begin; j < values.here.end; ++j) {
    const float* weights = p + j;
#pragma GCC unroll 4
    for (int c = 0; c < kPairs; ++c) {
      if (c * kPairStep % kLine<T> == 0 && next.here.begin <= j && j < next.here.end) {
        hwy::Prefetch(next.rows[j] + column + c * kPairStep);
      }
      const Two v = load_values(values.rows[j] + column + c * kPairStep);
      asm volatile(
          ""
          : "+r"(weights));  // else the compiler keeps those of all rows in registers that it has not
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const VF weight = hn::Set(DF(), weights[r * kBlockPositions]);
        sums[r][2 * c] = hn::MulAdd(weight, v.first, sums[r][2 * c]);
        sums[r][2 * c + 1] = hn::MulAdd(weight, v.second, sums[r][2 * c + 1]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < 2 * kPairs; ++c) store(sums[r][c], out + r * out_stride + column + c * kStep);
  }
}

// The same for all columns: as many at a time as leave enough chains of sums to hide their latency.
template <int kRows, typename T>
HWY_INLINE void add_all_values(const float* p, const CacheRows<T>& values, const CacheRows<T>& next,
                               int64_t columns, float* out, int64_t out_stride) {
  constexpr int kPairs = kRows == 1 ? 4 : kRows == 4 && kFewRegisters ? 1 : 2;
  const auto whole = [](const T* from) HWY_ATTR { return load_two(from); };
  int64_t column = 0;
  for (; column + kPairs * kPairStep <= columns; column += kPairs * kPairStep) {
    add_values<kRows, kPairs>(p, values, next, column, whole, out, out_stride);
  }
  for (; column + kPairStep <= columns; column += kPairStep) {
    add_values<kRows, 1>(p, values, next, column, whole, out, out_stride);
  }
  if (const int64_t rest = columns - column; rest > 0) {
    const auto part = [rest](const T* from) HWY_ATTR { return load_two_part(from, rest); };
    add_values<kRows, 1>(p, values, next, column, part, out, out_stride);
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
