// Packs blocks with lifetimes into one arena: the offsets of dynamic storage allocation. Knows nothing of
// programs. Optimal packing is NP-hard (Garey and Johnson 1979, problem SR2), so several greedy orders are
// tried and the smallest arena kept; the result depends on the blocks alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon {

struct PackBlock {
  int64_t bytes = 0;
  int32_t first = 0;  // alive in steps first..last, both included
  int32_t last = 0;
};

struct Packing {
  std::vector<int64_t> offsets;  // one for each block
  int64_t peak_bytes = 0;        // the largest offset + bytes
};

struct MostLive {
  int64_t bytes = 0;
  int32_t step = 0;  // the first step where so much is alive
};

// The most bytes alive at once, below which no packing can be.
MostLive most_live(std::span<const PackBlock> blocks);

// Offsets are sums of block sizes, so they are aligned as the sizes are. Time grows as n log n above
// kThoroughPackBlocks blocks and as n^2 below.
Packing pack_blocks(std::span<const PackBlock> blocks);
inline constexpr size_t kThoroughPackBlocks = 12000;

// One after the other, nothing shared.
Packing pack_without_reuse(std::span<const PackBlock> blocks);

}  // namespace tenon
