#include "backend/cpu/few_rows_bf16.h"

#include <immintrin.h>

namespace tenon {
namespace {

#define TENON_TILES __attribute__((target("avx512f,amx-tile,amx-bf16")))

constexpr int64_t kLine = 32;                // elements of a cache line
constexpr int64_t kMostAhead = 128 << 10;    // elements: a quarter of the smallest second cache
constexpr int64_t kLittleAhead = 2 * kLine;  // enough to hide memory where rows are long

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

}  // namespace tenon
