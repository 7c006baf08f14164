// The innermost tiles of products of few rows by bf16 weights that stay where they lie, row by output: one
// for each unit that multiplies bf16 (gemm_bf16_tile.h). Sums are f32, each in an order of its own depth
// alone. A machine that lacks the unit must not call its tile.
#pragma once

#include <cstdint>

namespace tenon {

inline constexpr int64_t kFewRowsTile = 16;     // rows of a tile register: of weights, and of activations
inline constexpr int64_t kFewRowsDepth = 32;    // that a tile register holds
inline constexpr int64_t kFewRowsColumns = 48;  // outputs of both tiles
inline constexpr int64_t kFewRowsPairRows = 4;  // of activations at a time
inline constexpr int64_t kFewRowsPairColumns = 6;

// `count` rows of weights from `data` on, `stride` elements apart.
struct WeightRows {
  const uint16_t* data;
  int64_t stride, count;
};

// sums[r * kFewRowsTile + i] = weights' row r · activations' row i, for whole tiles of rows, up to
// kFewRowsColumns of them. `panel` holds the activations: word p * kFewRowsTile + i is the pair of elements
// 2p and 2p + 1 of row i. `depth` is a multiple of kFewRowsDepth. Between begin_bf16_tiles() and
// end_bf16_tiles().
void multiply_few_rows_tiles(const WeightRows& weights, const uint32_t* panel, int64_t depth, float* sums);

// sums[i * kFewRowsColumns + r] = weights' row r · activations' row i, for `rows` rows of activations,
// `depth` apart.
void multiply_few_rows_pairs(const WeightRows& weights, const uint16_t* activations, int64_t rows,
                             int64_t depth, float* sums);

}  // namespace tenon
