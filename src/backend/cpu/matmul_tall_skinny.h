// How a product a^T · b with one narrow operand (matmul_tall_skinny.cc) is cut. Pure functions of sizes, the
// same for every instruction set and number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/checked_math.h"

namespace tenon {

inline constexpr int64_t kMostFew = 64;      // columns of the narrow operand
inline constexpr int64_t kManyColumns = 4;   // of the wide one at least, times the narrow one's
inline constexpr int64_t kMostTileRows = 8;  // narrow columns of a tile, on any target
inline constexpr int64_t kMostStrip = 48;    // wide columns of a tile, on any target
inline constexpr int64_t kMostBlockRows = 64;

// Rows that are multiplied at a time: those of a part of the wide operand, twice (one block is asked for
// while another is multiplied), and its sums fit the second cache of 512 KiB.
constexpr int64_t block_rows(int64_t columns) {
  return columns <= 768 ? kMostBlockRows : kMostBlockRows / 2;
}

struct TallSkinnySplit {
  int slices;            // of rows, whose sums are kept apart
  int parts;             // of the wide columns
  int64_t stride;        // floats from row to row of the sums: the wide columns, padded
  int64_t slice_floats;  // the sums of a slice, [few, stride] padded
};

constexpr TallSkinnySplit tall_skinny_split(int64_t rows, int64_t few, int64_t many) {
  constexpr int64_t kSliceRows = 256, kMostSlices = 16, kMostFloats = 2 << 20;
  constexpr int64_t kPartColumns = 1536, kPartFloats = 16 * kPartColumns;
  TallSkinnySplit out{};
  out.stride = round_up(many, kMostStrip);
  out.slice_floats = round_up(few, kMostTileRows) * out.stride;
  const int64_t most = std::clamp<int64_t>(kMostFloats / out.slice_floats, 1, kMostSlices);
  out.slices = static_cast<int>(std::clamp<int64_t>(rows / kSliceRows, 1, most));
  out.parts =
      static_cast<int>(std::max(ceil_div(many, kPartColumns), ceil_div(out.slice_floats, kPartFloats)));
  return out;
}

// Of the workspace of one thread: a block of the narrow operand and a copy of a strip of the wide one.
constexpr int64_t tall_skinny_thread_floats(int64_t few) {
  return kMostBlockRows * (round_up(few, kMostTileRows) + kMostStrip);
}

}  // namespace tenon
