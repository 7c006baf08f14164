// Activations as the products of few rows by quantised blocks want them: for each row its values, in the
// order in which a block's numbers are unpacked, and two numbers a block that multiply the block's header.
// Rows are padded with zero blocks to what every target takes at a time.
#pragma once

#include <cstdint>

#include "base/checked_math.h"

namespace tenon {

inline constexpr int64_t kBlock = 32;
inline constexpr int64_t kMostBlocksAtATime = 8;  // of any target

struct BlockActivations {
  float* values;   // row by row, value_stride apart
  float* offsets;  // two a block; rows are offset_stride apart
  int64_t value_stride, offset_stride;
  int64_t blocks;  // of a row, padding apart

  static BlockActivations in(float* memory, int64_t rows, int64_t blocks) {
    const int64_t padded = round_up(blocks, kMostBlocksAtATime);
    return {memory, memory + rows * padded * kBlock, padded * kBlock, padded * 2, blocks};
  }
  const float* row(int64_t index) const { return values + index * value_stride; }
  BlockActivations from_row(int64_t index) const {
    BlockActivations out = *this;
    out.values += index * value_stride;
    out.offsets += index * offset_stride;
    return out;
  }
};

// One row of k floats, then the activations.
inline int64_t block_activations_bytes(int64_t rows, int64_t k) {
  return (k + rows * round_up(k / kBlock, kMostBlocksAtATime) * (kBlock + 2)) * 4;
}

}  // namespace tenon
