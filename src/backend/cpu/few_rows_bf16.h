// The innermost tile of products of few rows by bf16 weights that stay where they lie, row by output, for the
// tile registers of AMX (gemm_bf16_tile.h). Sums are f32, each in an order of its own depth alone. A machine
// that lacks the unit must not call it.
#pragma once

#include <cstdint>

namespace tenon {

inline constexpr int64_t kFewRowsTile = 16;       // rows of a tile register: of weights, and of activations
inline constexpr int64_t kFewRowsTileDepth = 32;  // elements that one of its rows holds

// kFewRowsTile rows of weights from `data` on, `stride` elements apart, and how many rows behind them the
// caller reads next.
struct WeightRows {
  const uint16_t* data;
  int64_t stride, following;
};

// sums[r * kFewRowsTile + i] = weights' row r · activations' row i, for kFewRowsTile rows of each. `panel`
// holds the activations: word p * kFewRowsTile + i is the pair of elements 2p and 2p + 1 of row i. `depth` is
// a multiple of kFewRowsTileDepth. Between begin_bf16_tiles() and end_bf16_tiles().
void multiply_few_rows_tile(const WeightRows& weights, const uint32_t* panel, int64_t depth, float* sums);

}  // namespace tenon
