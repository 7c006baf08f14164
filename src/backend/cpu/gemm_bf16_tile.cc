#include "backend/cpu/gemm_bf16_tile.h"

#include <immintrin.h>

#include <cstring>

namespace tenon {
namespace {

#define TENON_PAIRS __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define TENON_TILES __attribute__((target("avx512f,amx-tile,amx-bf16")))

// A pair of one row in every lane.
TENON_PAIRS inline __m512bh pair_of(const uint16_t* a) {
  int32_t pair;
  std::memcpy(&pair, a, sizeof(pair));
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
}

TENON_PAIRS inline __m512bh pairs_at(const uint32_t* b) {
  return reinterpret_cast<__m512bh>(_mm512_loadu_si512(b));
}

// One row of sums, and three: rows are addressed from every third one, by one or two strides, so that four
// pointers do for twelve rows.
TENON_PAIRS inline void add_row(const uint16_t* a, __m512bh b0, __m512bh b1, __m512 (&sums)[2]) {
  const __m512bh pair = pair_of(a);
  sums[0] = _mm512_dpbf16_ps(sums[0], pair, b0);
  sums[1] = _mm512_dpbf16_ps(sums[1], pair, b1);
}

TENON_PAIRS inline const uint16_t* add_three_rows(const uint16_t* a, int64_t stride, __m512bh b0, __m512bh b1,
                                                  __m512 (*sums)[2]) {
  add_row(a, b0, b1, sums[0]);
  add_row(a + stride, b0, b1, sums[1]);
  add_row(a + 2 * stride, b0, b1, sums[2]);
  a += 2;
  asm("" : "+r"(a));  // else the compiler makes a pointer for every row
  return a;
}

TENON_PAIRS inline void add_pairs(const Bf16Segment& segment, __m512 (&sums)[kBf16DotRows][2]) {
  const int64_t stride = segment.a_stride;
  const uint16_t *a0 = segment.a, *a3 = a0 + 3 * stride, *a6 = a0 + 6 * stride, *a9 = a0 + 9 * stride;
  const uint32_t* b = segment.b;
  for (int64_t p = 0; p < segment.depth; p += 2, b += kBf16PanelColumns) {
    const __m512bh b0 = pairs_at(b), b1 = pairs_at(b + 16);
    a0 = add_three_rows(a0, stride, b0, b1, sums);
    a3 = add_three_rows(a3, stride, b0, b1, sums + 3);
    a6 = add_three_rows(a6, stride, b0, b1, sums + 6);
    a9 = add_three_rows(a9, stride, b0, b1, sums + 9);
  }
}

// Memory of 64 bytes as LDTILECFG reads it: every tile 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

constexpr int64_t kRowBytes = kBf16PanelColumns * 4;  // of sums and of panels

// Tiles 0 to 3 hold the quarters of 32 x 32 sums, `stride` floats from row to row.
TENON_TILES void zero_tiles() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

TENON_TILES void store_tiles(float* sums, int64_t stride) {
  _tile_stored(0, sums, stride * 4);
  _tile_stored(1, sums + 16, stride * 4);
  _tile_stored(2, sums + 16 * stride, stride * 4);
  _tile_stored(3, sums + 16 * stride + 16, stride * 4);
}

// Tile loads are opaque to the compiler, which must not move stores of what they read past them.
TENON_TILES void load_tiles(const float* sums, int64_t stride) {
  asm volatile("" ::: "memory");
  _tile_loadd(0, sums, stride * 4);
  _tile_loadd(1, sums + 16, stride * 4);
  _tile_loadd(2, sums + 16 * stride, stride * 4);
  _tile_loadd(3, sums + 16 * stride + 16, stride * 4);
}

TENON_TILES void add_to_tiles(const Bf16Segment& segment) {
  const uint16_t *upper = segment.a, *lower = segment.a + 16 * segment.a_stride;
  const uint32_t* b = segment.b;
  for (int64_t p = 0; p < segment.depth; p += kBf16DepthUnit) {
    _tile_loadd(4, upper + p, segment.a_stride * 2);
    _tile_loadd(6, b, kRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + 16, kRowBytes);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, lower + p, segment.a_stride * 2);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    b += kBf16DepthUnit / 2 * kBf16PanelColumns;
  }
}

TENON_TILES void scale_tiles(float scale, float* sums) {
  store_tiles(sums, kBf16PanelColumns);
  const __m512 factor = _mm512_set1_ps(scale);
  for (int64_t i = 0; i < kBf16TileRows * kBf16PanelColumns; i += 16) {
    _mm512_storeu_ps(sums + i, _mm512_mul_ps(_mm512_loadu_ps(sums + i), factor));
  }
  load_tiles(sums, kBf16PanelColumns);
}

}  // namespace

TENON_PAIRS void multiply_bf16_pairs(std::span<const Bf16Segment> segments, float* sums) {
  __m512 tile[kBf16DotRows][2];
#pragma GCC unroll 12
  for (auto& row : tile) row[0] = row[1] = _mm512_setzero_ps();
  for (const Bf16Segment& segment : segments) {
    add_pairs(segment, tile);
    if (segment.scale == 1.0f) continue;
    const __m512 factor = _mm512_set1_ps(segment.scale);
#pragma GCC unroll 12
    for (auto& row : tile) {
      row[0] = _mm512_mul_ps(row[0], factor);
      row[1] = _mm512_mul_ps(row[1], factor);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kBf16DotRows; ++i) {
    _mm512_storeu_ps(sums + i * kBf16PanelColumns, tile[i][0]);
    _mm512_storeu_ps(sums + i * kBf16PanelColumns + 16, tile[i][1]);
  }
}

TENON_TILES void multiply_bf16_tiles(std::span<const Bf16Segment> segments, float* sums) {
  zero_tiles();
  for (const Bf16Segment& segment : segments) {
    add_to_tiles(segment);
    if (segment.scale != 1.0f) scale_tiles(segment.scale, sums);
  }
  store_tiles(sums, kBf16PanelColumns);
}

TENON_TILES void multiply_bf16_block(const Bf16Segment& segment, bool add, float* sums, int64_t stride) {
  if (add) {
    load_tiles(sums, stride);
  } else {
    zero_tiles();
  }
  add_to_tiles(segment);
  store_tiles(sums, stride);
}

// GCC's intrinsic tells the compiler of the first eight bytes alone, so that it drops the rest.
TENON_TILES void begin_bf16_tiles() {
  const TileConfig config;
  asm volatile("ldtilecfg %0" ::"m"(config));
}

TENON_TILES void end_bf16_tiles() {
  _tile_release();
}

}  // namespace tenon
