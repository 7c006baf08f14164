// Sizes and masks of the attention kernels over packed sequences, and how a thread's scratch is cut. A row
// tile holds kRowTile tokens (of up to kMostGroup heads that share a kv head, where they are queries); the
// other side comes kColumnTile at a time, packed once for all the tiles of a block.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu/gemm_bf16_tile.h"
#include "backend/cpu/gemm_blocking.h"
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"
#include "base/checked_math.h"
#include "device/kernel.h"

namespace tenon {

inline constexpr int64_t kRowTile = 48;  // whole slivers of every target and unit
inline constexpr int64_t kColumnTile = 64;
inline constexpr int64_t kMostGroup = 8;
inline constexpr int64_t kMostTilesOfBlock = 4;  // whose sums stay in a second cache of 512 KiB
inline constexpr int64_t kFewBlocks = 32;        // that threads can share evenly

// Whether a kernel on a unit for bf16 serves attention, forward or backward.
template <GemmUnit kUnit>
bool serves_unit(const OpSite& site, const DeviceFacts& facts) {
  return has_gemm_unit(kUnit, site.inputs[0].dtype, facts) && serves_vector_dtypes(site, facts);
}

// Queries of heads [head, head + heads), which share a kv head.
struct QueryBlock {
  Range rows;
  int64_t kv_head, head, heads;
};

struct AttentionSizes {
  int64_t tokens, heads, kv_heads, head_dim, v_head_dim, window;
  float scale, softcap;

  AttentionSizes(const Attrs& attrs, const Shape& q, const Shape& v)
      : tokens(q[0]),
        heads(q[1]),
        kv_heads(v[-2]),
        head_dim(q[2]),
        v_head_dim(v[-1]),
        window(attrs.integer("window")),
        scale(static_cast<float>(attrs.real("scale"))),
        softcap(static_cast<float>(attrs.real("softcap"))) {}

  int64_t group() const { return heads / kv_heads; }
  int64_t subgroups() const { return ceil_div(group(), kMostGroup); }  // of a kv head's heads
  int64_t heads_of_tile() const { return std::min(group(), kMostGroup); }
  // Rows of a block: by sizes alone, so that the bits do not depend on the threads.
  int64_t rows_of_block(int64_t tile_heads) const {
    const int64_t most = std::clamp<int64_t>(3 * kMostTilesOfBlock / tile_heads, 1, kMostTilesOfBlock);
    return std::clamp(ceil_div(tokens, kRowTile) * kv_heads / kFewBlocks, int64_t{1}, most) * kRowTile;
  }
  int64_t query_block() const { return rows_of_block(heads_of_tile()); }
  int64_t key_block() const { return rows_of_block(1); }
  // Blocks of up to `rows` queries of up to kMostGroup heads, in the order of the queries.
  int64_t block_count(int64_t rows) const { return ceil_div(tokens, rows) * kv_heads * subgroups(); }
  QueryBlock block(int64_t rows, int64_t index) const {
    const int64_t begin = index / (kv_heads * subgroups()) * rows;
    const int64_t kv_head = index / subgroups() % kv_heads;
    const int64_t first = index % subgroups() * kMostGroup;  // head within its group
    return {{begin, std::min(begin + rows, tokens)},
            kv_head,
            kv_head * group() + first,
            std::min(kMostGroup, group() - first)};
  }
  // The first position that position t of a sequence from `sequence_begin` on attends to.
  int64_t begin(int64_t sequence_begin, int64_t t) const {
    return window > 0 ? std::max(sequence_begin, t - window + 1) : sequence_begin;
  }
};

// Floats of a block of `rows` x `columns` packed along either, for any target and in bf16.
inline int64_t packed_floats(int64_t rows, int64_t columns) {
  return round_up(std::max(rows, kBf16DepthUnit / 2) * round_up(columns, kMostPanelColumns),
                  kArenaAlignment / 4);
}

// Hands out parts of a scratch block, each aligned to a cache line; with a null base it only counts.
class ScratchCutter {
 public:
  explicit ScratchCutter(std::byte* base = nullptr) : base_(base) {}
  template <typename T = float>
  T* take(int64_t count) {
    T* part = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += round_up(count * static_cast<int64_t>(sizeof(T)), kArenaAlignment);
    return part;
  }
  int64_t used() const { return used_; }

 private:
  std::byte* base_;
  int64_t used_ = 0;
};

// The scratch of one thread of attention_flash; with a null base only `bytes` is set.
struct AttentionScratch {
  AttentionScratch(const AttentionSizes& sizes, std::byte* base) {
    ScratchCutter cutter(base);
    const int64_t rows = sizes.heads_of_tile() * sizes.query_block();
    queries = cutter.take(rows * sizes.head_dim);
    keys = cutter.take(packed_floats(sizes.head_dim, kColumnTile));
    values = cutter.take(packed_floats(kColumnTile, sizes.v_head_dim));
    scores = cutter.take(kRowTile * kColumnTile);
    sums = cutter.take(rows * sizes.v_head_dim);
    largest = cutter.take(rows);
    total = cutter.take(rows);
    bytes = cutter.used();
  }
  float *queries, *keys, *values, *scores, *sums, *largest, *total;
  int64_t bytes;
};

// The scratch of one thread of attention_grad_flash. "Columns" are the axis that tiles have kColumnTile of:
// keys while dq is computed, queries while dk and dv are.
struct AttentionGradScratch {
  AttentionGradScratch(const AttentionSizes& sizes, std::byte* base) {
    ScratchCutter cutter(base);
    const int64_t rows = std::max(sizes.heads_of_tile() * sizes.query_block(), sizes.key_block());
    row_qk = cutter.take(rows * sizes.head_dim);
    row_v = cutter.take(rows * sizes.v_head_dim);
    column_qk = cutter.take(packed_floats(sizes.head_dim, kColumnTile));
    column_v = cutter.take(packed_floats(sizes.v_head_dim, kColumnTile));
    plain_qk = cutter.take(packed_floats(kColumnTile, sizes.head_dim));
    plain_v = cutter.take(packed_floats(kColumnTile, sizes.v_head_dim));
    p = cutter.take(kRowTile * kColumnTile);
    ds = cutter.take(kRowTile * kColumnTile);
    sum_qk = cutter.take(rows * sizes.head_dim);
    sum_v = cutter.take(sizes.key_block() * sizes.v_head_dim);
    lse = cutter.take(kColumnTile);
    delta = cutter.take(kColumnTile);
    begins = cutter.take<int32_t>(kColumnTile);
    bytes = cutter.used();
  }
  float *row_qk, *row_v;        // the rows' q and dout (or k and v), as slivers
  float *column_qk, *column_v;  // the columns' k and v (or q and dout), as panels over the head's dimensions
  float *plain_qk, *plain_v;    // the same, as panels over the columns themselves
  float *p, *ds;                // probabilities, and gradients of the scores
  float *sum_qk, *sum_v;        // dq of each head of the group (or dk), dv
  float *lse, *delta;           // of the columns, where they are queries
  int32_t* begins;
  int64_t bytes;
};

}  // namespace tenon
