// Sizes of the attention kernels that multiply only what is visible, and how a thread's scratch is cut.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu/attention_sizes.h"

namespace tenon {

// A tile of probabilities and one of their gradients stay in a first cache of 32 KiB with what they are
// multiplied by. Both are whole slivers and panels of every target.
inline constexpr int64_t kVisibleRows = kRowTile;
inline constexpr int64_t kVisibleKeys = 96;
inline constexpr int64_t kVisibleChunk = 192;  // tokens whose keys are packed at a time

// Floats from row to row of a copied head: whole panels, and an odd number of cache lines, so that rows
// spread over a cache.
constexpr int64_t copied_stride(int64_t dim) {
  return (round_up(dim, kMostPanelColumns) / 16 | 1) * 16;
}

// Scratch of one thread of attention_visible.
struct VisibleScratch {
  VisibleScratch(const AttentionSizes& sizes, std::byte* base) {
    ScratchCutter cutter(base);
    const int64_t rows = sizes.heads_of_tile() * sizes.query_block();
    queries = cutter.take(rows * copied_stride(sizes.head_dim));
    keys = cutter.take(packed_floats(sizes.head_dim, kVisibleKeys));
    values = cutter.take(kVisibleKeys * copied_stride(sizes.v_head_dim));
    scores = cutter.take(kVisibleRows * kVisibleKeys);
    sums = cutter.take(rows * copied_stride(sizes.v_head_dim));
    largest = cutter.take(rows);
    total = cutter.take(rows);
    bytes = cutter.used();
  }
  float *queries, *keys, *values, *scores, *sums, *largest, *total;
  int64_t bytes;
};

// Scratch of one thread of attention_grad_one_pass: a chunk of keys, a tile of queries.
struct OnePassScratch {
  OnePassScratch(const AttentionSizes& sizes, std::byte* base) {
    ScratchCutter cutter(base);
    const int64_t stride = copied_stride(sizes.head_dim), v_stride = copied_stride(sizes.v_head_dim);
    key_panels = cutter.take(packed_floats(sizes.head_dim, kVisibleChunk));
    value_panels = cutter.take(packed_floats(sizes.v_head_dim, kVisibleChunk));
    keys = cutter.take(kVisibleChunk * stride);
    q = cutter.take(kVisibleRows * stride);
    dout = cutter.take(kVisibleRows * v_stride);
    out = cutter.take(kVisibleRows * v_stride);
    p = cutter.take(kVisibleRows * kVisibleKeys);
    ds = cutter.take(kVisibleRows * kVisibleKeys);
    lse = cutter.take(kVisibleRows);
    delta = cutter.take(kVisibleRows);
    bytes = cutter.used();
  }
  float *key_panels, *value_panels;  // over the head's dimensions
  float* keys;                       // rows as they are
  float *q, *dout, *out;             // rows of one head
  float *p, *ds;                     // probabilities, and gradients of the scores
  float *lse, *delta;
  int64_t bytes;
};

}  // namespace tenon
