// How paged_attention is cut. Positions are taken in chunks of kChunkPositions, each with a softmax of its
// own, and the chunks are merged in order: the same arithmetic for a position whatever else is in the batch,
// whether one thread takes all chunks of a token or several share them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu/attention_sizes.h"

namespace tenon {

inline constexpr int64_t kChunkPositions = 256;
inline constexpr int64_t kBlockPositions = 64;
inline constexpr int64_t kUnitTokens =
    8;  // that share one reading of the cache, where they are of one stream

struct PagedSizes {
  AttentionSizes attention;
  int64_t page_tokens, max_pages, pages;
  bool split_chunks;  // few tokens: threads share the chunks of each

  PagedSizes(const Attrs& attrs, const Shape& q, const Shape& v_cache, const Shape& page_table, int threads)
      : attention(attrs, q, v_cache),
        page_tokens(v_cache[1]),
        max_pages(page_table[1]),
        pages(v_cache[0]),
        split_chunks(threads > 1 && q[0] * v_cache[2] < 8 * threads) {}

  int64_t chunks() const { return std::max<int64_t>(1, ceil_div(max_pages * page_tokens, kChunkPositions)); }
  // Chunks that a token at `position` attends to, those before its window included.
  int64_t chunks_of(int64_t position) const { return position / kChunkPositions + 1; }
  int64_t group() const { return std::min(attention.group(), kMostGroup); }
  // Whole pairs of vectors of every target.
  int64_t padded_dim() const { return round_up(attention.head_dim, 32); }
  int64_t padded_v_dim() const { return round_up(attention.v_head_dim, 32); }
  // A chunk's result for one head of a token: weighted values, largest score, sum of exponentials.
  int64_t partial_floats() const { return padded_v_dim() + 16; }
  int64_t shared_bytes() const {
    if (!split_chunks) return 0;
    return round_up(attention.tokens * attention.heads * chunks() * partial_floats() * 4, kArenaAlignment);
  }
};

// The scratch of one thread; with a null base only `bytes` is set.
struct PagedScratch {
  PagedScratch(const PagedSizes& sizes, std::byte* base) {
    ScratchCutter cutter(base);
    const int64_t rows = kUnitTokens * sizes.group();
    queries = cutter.take(rows * sizes.padded_dim());
    scores = cutter.take(rows * kBlockPositions);
    partials = cutter.take(rows * sizes.partial_floats());
    totals = cutter.take(rows * sizes.partial_floats());
    begins = cutter.take<int64_t>(rows);
    ends = cutter.take<int64_t>(rows);
    bytes = cutter.used();
  }
  float* queries;          // [rows, padded_dim], scaled, in the order of the tiles, zero past head_dim
  float* scores;           // [rows, kBlockPositions]
  float* partials;         // [rows, partial_floats]: of the chunk at hand
  float* totals;           // [rows, partial_floats]: of the chunks so far
  int64_t *begins, *ends;  // positions that each row attends to
  int64_t bytes;
};

}  // namespace tenon
