#include "backend/cpu/few_rows_bf16.h"

#include <immintrin.h>

#include <algorithm>

namespace tenon {
namespace {

#define TENON_PAIRS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define TENON_TILES __attribute__((target("avx512f,amx-tile,amx-bf16")))

constexpr int64_t kLine = 32;                // elements of a cache line
constexpr int64_t kMostAhead = 128 << 10;    // elements: a quarter of the smallest second cache
constexpr int64_t kLittleAhead = 2 * kLine;  // enough to hide memory where rows are long
constexpr int kPairRows = 4;  // 24 sums, 6 vectors of weights and 1 of activations: 31 of 32 registers
constexpr int kPairColumns = 6;

// Asks for what is read after the tile at `p`: the rows that follow, in the order of their memory, or, where
// they are too far away or there are none, what these rows hold a little later.
inline void prefetch_tile(const WeightRows& weights, int64_t p, int64_t depth) {
  static_assert(kFewRowsTileDepth == kLine);
  const int64_t tile = kFewRowsTile * weights.stride;
  if (weights.following >= kFewRowsTile && tile <= kMostAhead) {
    const uint16_t* from = weights.data + tile + p * kFewRowsTile;
    for (int64_t i = 0; i < kFewRowsTile; ++i) _mm_prefetch(from + i * kLine, _MM_HINT_T1);
  } else if (p + kLittleAhead < depth) {
    const uint16_t* from = weights.data + p + kLittleAhead;
    for (int64_t r = 0; r < kFewRowsTile; ++r) _mm_prefetch(from + r * weights.stride, _MM_HINT_T0);
  }
}

// out[i] = the sum of vector i. Where a mask takes all lanes, it keeps the compiler from seeing an undefined
// value in its own header.
TENON_PAIRS inline void store_sums(__m512 v0, __m512 v1, __m512 v2, __m512 v3, float* out, int64_t stride,
                                   int count) {
  constexpr __mmask8 kHalf = 0xff;
  constexpr __mmask16 kAll = 0xffff;
  const __m512 a =
      _mm512_add_ps(_mm512_maskz_unpacklo_ps(kAll, v0, v1), _mm512_maskz_unpackhi_ps(kAll, v0, v1));
  const __m512 b =
      _mm512_add_ps(_mm512_maskz_unpacklo_ps(kAll, v2, v3), _mm512_maskz_unpackhi_ps(kAll, v2, v3));
  const __m512d a2 = _mm512_castps_pd(a), b2 = _mm512_castps_pd(b);
  __m512 sums = _mm512_add_ps(_mm512_castpd_ps(_mm512_maskz_unpacklo_pd(kHalf, a2, b2)),
                              _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(kHalf, a2, b2)));
  sums = _mm512_add_ps(sums, _mm512_maskz_shuffle_f32x4(kAll, sums, sums, 0x4e));
  sums = _mm512_add_ps(sums, _mm512_maskz_shuffle_f32x4(kAll, sums, sums, 0xb1));
  for (int i = 0; i < count; ++i) out[i * stride] = sums[i];
}

TENON_PAIRS inline __m512bh pairs_at(const uint16_t* from, __mmask32 lanes) {
  return reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi16(lanes, from));
}
TENON_PAIRS inline __m512bh pairs_at(const uint16_t* from) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(from));
}

// The rows of weights that a tile of pairs asks for ahead: each of the tiles of all activations asks for its
// share, so that memory is as busy with the last as with the first.
struct Ahead {
  const uint16_t* data;
  int64_t stride, count;
};

inline void prefetch(const Ahead& ahead, int64_t p) {
  for (int64_t r = 0; r < ahead.count; ++r) _mm_prefetch(ahead.data + r * ahead.stride + p, _MM_HINT_T0);
}

// kRows rows of activations by kColumns of weights, each sum over the lanes of one vector.
template <int kRows, int kColumns>
TENON_PAIRS inline void multiply_tile(const WeightRows& weights, const uint16_t* activations, int64_t depth,
                                      const Ahead& ahead, float* sums) {
  __m512 tile[kPairRows][kColumns];
#pragma GCC unroll 24
  for (int i = 0; i < kPairRows * kColumns; ++i) tile[i / kColumns][i % kColumns] = _mm512_setzero_ps();
  const auto add = [&](int64_t p, auto... lanes) TENON_PAIRS {
    __m512bh columns[kColumns];
#pragma GCC unroll 6
    for (int j = 0; j < kColumns; ++j) columns[j] = pairs_at(weights.data + j * weights.stride + p, lanes...);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const __m512bh row = pairs_at(activations + i * depth + p, lanes...);
#pragma GCC unroll 6
      for (int j = 0; j < kColumns; ++j) tile[i][j] = _mm512_dpbf16_ps(tile[i][j], row, columns[j]);
    }
  };
  int64_t p = 0;
  for (; p + kLine <= depth; p += kLine) {
    prefetch(ahead, p);
    add(p);
  }
  if (p < depth) add(p, (__mmask32{1} << (depth - p)) - 1);
#pragma GCC unroll 6
  for (int j = 0; j < kColumns; ++j) {
    store_sums(tile[0][j], tile[1][j], tile[2][j], tile[3][j], sums + j, kFewRowsColumns, kRows);
  }
}

template <int kColumns>
TENON_PAIRS inline void multiply_all_rows(const WeightRows& weights, const uint16_t* activations,
                                          int64_t rows, int64_t depth, float* sums) {
  const int64_t tiles = (rows + kPairRows - 1) / kPairRows,
                following = std::min<int64_t>(weights.following, kColumns);
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t begin = following * t / tiles, end = following * (t + 1) / tiles;
    const Ahead ahead{weights.data + (kColumns + begin) * weights.stride, weights.stride, end - begin};
    const uint16_t* from = activations + t * kPairRows * depth;
    float* to = sums + t * kPairRows * kFewRowsColumns;
    switch (rows - t * kPairRows) {
      case 1:
        multiply_tile<1, kColumns>(weights, from, depth, ahead, to);
        break;
      case 2:
        multiply_tile<2, kColumns>(weights, from, depth, ahead, to);
        break;
      case 3:
        multiply_tile<3, kColumns>(weights, from, depth, ahead, to);
        break;
      default:
        multiply_tile<4, kColumns>(weights, from, depth, ahead, to);
        break;
    }
  }
}

}  // namespace

// The weights are the first operand of the unit, which is read as it lies.
TENON_TILES void multiply_few_rows_tile(const WeightRows& weights, const uint32_t* panel, int64_t depth,
                                        float* sums) {
  constexpr int64_t kRowBytes = kFewRowsTile * 4;
  _tile_zero(0);
  for (int64_t p = 0; p < depth; p += kFewRowsTileDepth) {
    prefetch_tile(weights, p, depth);
    _tile_loadd(1, weights.data + p, weights.stride * 2);
    _tile_loadd(2, panel + p / 2 * kFewRowsTile, kRowBytes);
    _tile_dpbf16ps(0, 1, 2);
  }
  _tile_stored(0, sums, kRowBytes);
}

TENON_PAIRS void multiply_few_rows_pairs(const WeightRows& weights, const uint16_t* activations, int64_t rows,
                                         int64_t depth, float* sums) {
  int64_t column = 0;
  const auto part = [&](int64_t count) {
    return WeightRows{weights.data + column * weights.stride, weights.stride, count,
                      weights.count - column - count + weights.following};
  };
  for (; column + kPairColumns <= weights.count; column += kPairColumns) {
    multiply_all_rows<kPairColumns>(part(kPairColumns), activations, rows, depth, sums + column);
  }
  for (; column < weights.count; ++column) {
    multiply_all_rows<1>(part(1), activations, rows, depth, sums + column);
  }
}

}  // namespace tenon
