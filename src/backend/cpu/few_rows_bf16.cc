#include "backend/cpu/few_rows_bf16.h"

#include <immintrin.h>

#include <algorithm>

namespace tenon {
namespace {

#define TENON_PAIRS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define TENON_TILES __attribute__((target("avx512f,amx-tile,amx-bf16")))

constexpr int64_t kAhead =
    4 * kFewRowsDepth;               // elements: enough to hide memory, few enough for the first cache
constexpr int64_t kPairsDepth = 32;  // of a vector

// Asks for the weights that are read kAhead later: in the same rows, or in those that follow them.
inline void prefetch_rows(const WeightRows& weights, int64_t p, int64_t depth) {
  const int64_t later = p + kAhead;
  const uint16_t* from =
      weights.data + (later < depth ? later : weights.count * weights.stride + later - depth);
  for (int64_t r = 0; r < weights.count; ++r) _mm_prefetch(from + r * weights.stride, _MM_HINT_T0);
}

// Sums of kGroups tiles of 16 rows of weights; the weights are the first operand of the unit, which is read
// as it lies, and the activations the second, in pairs.
template <int kGroups>
TENON_TILES inline void multiply_groups(const WeightRows& weights, const uint32_t* panel, int64_t depth,
                                        float* sums) {
  static_assert(kGroups >= 1 && kGroups <= 3);
  constexpr int64_t kRowBytes = kFewRowsTile * 4;
  const int64_t group = kFewRowsTile * weights.stride, stride_bytes = weights.stride * 2;
  _tile_zero(0);
  if constexpr (kGroups > 1) _tile_zero(1);
  if constexpr (kGroups > 2) _tile_zero(2);
  const uint16_t* from = weights.data;
  for (int64_t p = 0; p < depth; p += kFewRowsDepth, from += kFewRowsDepth) {
    prefetch_rows(weights, p, depth);
    _tile_loadd(3, panel + p / 2 * kFewRowsTile, kRowBytes);
    _tile_loadd(4, from, stride_bytes);
    _tile_dpbf16ps(0, 4, 3);
    if constexpr (kGroups > 1) {
      _tile_loadd(5, from + group, stride_bytes);
      _tile_dpbf16ps(1, 5, 3);
    }
    if constexpr (kGroups > 2) {
      _tile_loadd(6, from + 2 * group, stride_bytes);
      _tile_dpbf16ps(2, 6, 3);
    }
  }
  constexpr int64_t kTile = kFewRowsTile * kFewRowsTile;
  _tile_stored(0, sums, kRowBytes);
  if constexpr (kGroups > 1) _tile_stored(1, sums + kTile, kRowBytes);
  if constexpr (kGroups > 2) _tile_stored(2, sums + 2 * kTile, kRowBytes);
}

// out[i] = the sum of vector i. Where a mask takes all lanes, it keeps the compiler from seeing an undefined
// value in its own header.
TENON_PAIRS inline void store_sums(__m512 v0, __m512 v1, __m512 v2, __m512 v3, float* out) {
  constexpr __mmask8 kPairs = 0xff;
  constexpr __mmask16 kAll = 0xffff, kFirst = 0xf;
  const __m512 a =
      _mm512_add_ps(_mm512_maskz_unpacklo_ps(kAll, v0, v1), _mm512_maskz_unpackhi_ps(kAll, v0, v1));
  const __m512 b =
      _mm512_add_ps(_mm512_maskz_unpacklo_ps(kAll, v2, v3), _mm512_maskz_unpackhi_ps(kAll, v2, v3));
  const __m512d a2 = _mm512_castps_pd(a), b2 = _mm512_castps_pd(b);
  __m512 sums = _mm512_add_ps(_mm512_castpd_ps(_mm512_maskz_unpacklo_pd(kPairs, a2, b2)),
                              _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(kPairs, a2, b2)));
  sums = _mm512_add_ps(sums, _mm512_maskz_shuffle_f32x4(kAll, sums, sums, 0x4e));
  sums = _mm512_add_ps(sums, _mm512_maskz_shuffle_f32x4(kAll, sums, sums, 0xb1));
  _mm512_mask_storeu_ps(out, kFirst, sums);
}

TENON_PAIRS inline __m512bh pairs_at(const uint16_t* from, __mmask32 lanes) {
  return reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi16(lanes, from));
}

// kRows rows of activations by kColumns of weights, each sum over the lanes of one vector.
template <int kRows, int kColumns>
TENON_PAIRS inline void multiply_tile(const WeightRows& weights, const uint16_t* activations, int64_t depth,
                                      bool ahead, float* sums) {
  __m512 tile[kFewRowsPairRows][kColumns];
#pragma GCC unroll 24
  for (int i = 0; i < kFewRowsPairRows * kColumns; ++i)
    tile[i / kColumns][i % kColumns] = _mm512_setzero_ps();
  for (int64_t p = 0; p < depth; p += kPairsDepth) {
    if (ahead) prefetch_rows(weights, p, depth);
    const int64_t rest = depth - p;
    const __mmask32 lanes = rest >= kPairsDepth ? ~__mmask32{0} : (__mmask32{1} << rest) - 1;
    __m512bh columns[kColumns];
#pragma GCC unroll 6
    for (int j = 0; j < kColumns; ++j) columns[j] = pairs_at(weights.data + j * weights.stride + p, lanes);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const __m512bh row = pairs_at(activations + i * depth + p, lanes);
#pragma GCC unroll 6
      for (int j = 0; j < kColumns; ++j) tile[i][j] = _mm512_dpbf16_ps(tile[i][j], row, columns[j]);
    }
  }
#pragma GCC unroll 6
  for (int j = 0; j < kColumns; ++j) {
    float of_rows[kFewRowsPairRows];
    store_sums(tile[0][j], tile[1][j], tile[2][j], tile[3][j], of_rows);
    for (int i = 0; i < kRows; ++i) sums[i * kFewRowsColumns + j] = of_rows[i];
  }
}

template <int kColumns>
TENON_PAIRS inline void multiply_all_rows(const WeightRows& weights, const uint16_t* activations,
                                          int64_t rows, int64_t depth, float* sums) {
  static_assert(kFewRowsPairRows == 4);
  for (int64_t i = 0; i < rows; i += kFewRowsPairRows) {
    const uint16_t* from = activations + i * depth;
    float* to = sums + i * kFewRowsColumns;
    switch (std::min(rows - i, kFewRowsPairRows)) {
      case 1:
        multiply_tile<1, kColumns>(weights, from, depth, i == 0, to);
        break;
      case 2:
        multiply_tile<2, kColumns>(weights, from, depth, i == 0, to);
        break;
      case 3:
        multiply_tile<3, kColumns>(weights, from, depth, i == 0, to);
        break;
      default:
        multiply_tile<4, kColumns>(weights, from, depth, i == 0, to);
        break;
    }
  }
}

}  // namespace

TENON_TILES void multiply_few_rows_tiles(const WeightRows& weights, const uint32_t* panel, int64_t depth,
                                         float* sums) {
  switch (weights.count / kFewRowsTile) {
    case 1:
      multiply_groups<1>(weights, panel, depth, sums);
      break;
    case 2:
      multiply_groups<2>(weights, panel, depth, sums);
      break;
    default:
      multiply_groups<3>(weights, panel, depth, sums);
      break;
  }
}

TENON_PAIRS void multiply_few_rows_pairs(const WeightRows& weights, const uint16_t* activations, int64_t rows,
                                         int64_t depth, float* sums) {
  int64_t column = 0;
  const auto part = [&](int64_t count) {
    return WeightRows{weights.data + column * weights.stride, weights.stride, count};
  };
  for (; column + kFewRowsPairColumns <= weights.count; column += kFewRowsPairColumns) {
    multiply_all_rows<kFewRowsPairColumns>(part(kFewRowsPairColumns), activations, rows, depth,
                                           sums + column);
  }
  for (; column < weights.count; ++column) {
    multiply_all_rows<1>(part(1), activations, rows, depth, sums + column);
  }
}

}  // namespace tenon
