// Sizes of the attention kernels in AMX's tile registers, and how a thread's scratch is cut.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu/attention_sizes.h"
#include "backend/cpu/gemm_bf16_tile.h"

namespace tenon {

inline constexpr int64_t kTileKeys = 128;   // of a tile of scores, forward: 16 KiB with kBf16TileRows queries
inline constexpr int64_t kGradTile = 64;    // queries, and keys, of a tile, backward
inline constexpr int64_t kGradChunk = 192;  // tokens whose keys are packed at a time
inline constexpr int64_t kMostTileBlock = 4;  // tiles of queries that share packed keys

static_assert(kTileKeys % kBf16PanelColumns == 0 && kGradTile % kBf16TileRows == 0 &&
              kGradTile % kBf16PanelColumns == 0 && kGradTile % kBf16DepthUnit == 0 &&
              kGradChunk % kGradTile == 0);

// A head's dimensions as whole tiles, which are as deep as they are wide.
constexpr int64_t tile_dim(int64_t dim) {
  static_assert(kBf16DepthUnit == kBf16PanelColumns && kBf16DepthUnit == kBf16TileRows);
  return round_up(dim, kBf16DepthUnit);
}

// Queries of a block: by sizes alone, so that the bits do not depend on the threads.
inline int64_t tile_query_block(const AttentionSizes& sizes) {
  const int64_t tiles = ceil_div(sizes.tokens, kBf16TileRows) * sizes.kv_heads / kFewBlocks;
  return std::clamp<int64_t>(tiles, 1, kMostTileBlock) * kBf16TileRows;
}

// Scratch of one thread, forward: a block of queries of the heads of a group, a tile of keys.
struct TileScratch {
  TileScratch(const AttentionSizes& sizes, std::byte* base) {
    ScratchCutter cutter(base);
    const int64_t rows = sizes.heads_of_tile() * tile_query_block(sizes);
    const int64_t dim = tile_dim(sizes.head_dim), v_dim = tile_dim(sizes.v_head_dim);
    queries = cutter.take<uint16_t>(rows * dim);
    keys = cutter.take<uint32_t>(kTileKeys * dim / 2);
    values = cutter.take<uint32_t>(kTileKeys * v_dim / 2);
    scores = cutter.take(kBf16TileRows * kTileKeys);
    weights = cutter.take<uint16_t>(kBf16TileRows * kTileKeys);
    sums = cutter.take(rows * v_dim);
    largest = cutter.take(rows);
    total = cutter.take(rows);
    bytes = cutter.used();
  }
  uint16_t* queries;
  uint32_t *keys, *values;
  float* scores;
  uint16_t* weights;  // the scores' exponentials
  float *sums, *largest, *total;
  int64_t bytes;
};

// Scratch of one thread, backward: a chunk of keys, a tile of queries of one head.
struct GradTileScratch {
  GradTileScratch(const AttentionSizes& sizes, std::byte* base) {
    ScratchCutter cutter(base);
    const int64_t dim = tile_dim(sizes.head_dim), v_dim = tile_dim(sizes.v_head_dim);
    const int64_t widest = std::max(dim, v_dim);
    key_panels = cutter.take<uint32_t>(kGradChunk * dim / 2);
    value_panels = cutter.take<uint32_t>(kGradChunk * v_dim / 2);
    keys = cutter.take<uint32_t>(kGradChunk * dim / 2);
    dk = cutter.take(kGradChunk * dim);
    dv = cutter.take(kGradChunk * v_dim);
    q = cutter.take<uint16_t>(kGradTile * dim);
    dout = cutter.take<uint16_t>(kGradTile * v_dim);
    turned_q = cutter.take<uint16_t>(kGradTile * dim);
    turned_dout = cutter.take<uint16_t>(kGradTile * v_dim);
    pairs = cutter.take<uint32_t>(kGradTile * widest / 2);
    wide[0] = cutter.take(widest);
    wide[1] = cutter.take(widest);
    dq = cutter.take(kGradTile * dim);
    p = cutter.take(kGradTile * kGradTile);
    ds = cutter.take(kGradTile * kGradTile);
    narrow_ds = cutter.take<uint16_t>(kGradTile * kGradTile);
    p_pairs = cutter.take<uint32_t>(kGradTile * kGradTile / 2);
    ds_pairs = cutter.take<uint32_t>(kGradTile * kGradTile / 2);
    lse = cutter.take(kGradTile);
    delta = cutter.take(kGradTile);
    bytes = cutter.used();
  }
  uint32_t *key_panels, *value_panels;  // of keys, in pairs along the head's dimensions
  uint32_t* keys;                    // tiles of keys, each as panels of the dimensions, in pairs along keys
  float *dk, *dv;                    // turned: [dimensions, keys]
  uint16_t *q, *dout;                // rows of one head
  uint16_t *turned_q, *turned_dout;  // [dimensions, queries]
  uint32_t* pairs;                   // on the way to those
  float* wide[2];                    // rows of out and dout
  float* dq;                         // [queries, dimensions]
  float *p, *ds;                     // probabilities, and gradients of the scores: [queries, keys]
  uint16_t* narrow_ds;
  uint32_t *p_pairs, *ds_pairs;  // panels of keys, in pairs along queries
  float *lse, *delta;
  int64_t bytes;
};

}  // namespace tenon
