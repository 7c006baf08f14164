// Tiles and fragments of the attention kernels on tensor cores: tiles of bf16 rows in shared memory, products
// of a warp's 16 rows with them. A lane holds rows group and group + 8 and, of each 8 columns, columns 2t and
// 2t + 1, with lane = 4 * group + t (the PTX manual's mma.m16n8k16).
#pragma once

#include "backend/cuda/attention.h"

namespace tenon::cuda {

inline constexpr int kFlashRows = 64;  // of a tile: 16 for each of four warps
inline constexpr int kFlashThreads = 128;
inline constexpr int kRowPad = 8;  // halves after each row: a warp's accesses fall into different banks
inline constexpr float kLog2E = 1.4426950408889634f;

template <int kDim>
struct Tile {
  static constexpr int kStride = kDim + kRowPad;
  static constexpr size_t kBytes = sizeof(uint16_t) * kFlashRows * kStride;
  uint16_t* rows;

  __device__ uint16_t* at(int row, int column) const { return rows + row * kStride + column; }
  __device__ uint32_t pair(int row, int column) const {
    return *reinterpret_cast<const uint32_t*>(at(row, column));
  }
};

// Rows of one head of a tensor [tokens, heads, dim].
struct HeadRows {
  const uint16_t* data;
  int64_t stride;  // halves from a token to the next
  int dim;         // a multiple of 8
  int64_t tokens;

  __device__ uint32_t pair(int64_t row, int column) const {
    if (row >= tokens || column >= dim) return 0;
    return *reinterpret_cast<const uint32_t*>(data + row * stride + column);
  }
};

__device__ inline HeadRows head_rows(const Tensor& t, int64_t heads, int64_t head, int64_t dim,
                                     int64_t tokens) {
  return {reinterpret_cast<const uint16_t*>(t.data) + head * dim, heads * dim, static_cast<int>(dim), tokens};
}

// Fills a tile with rows first .. first + kFlashRows; zeros past the last row and column.
template <int kDim>
__device__ inline void load_tile(const Tile<kDim>& tile, const HeadRows& from, int64_t first) {
  constexpr int kVectors = kDim / 8;
  for (int i = static_cast<int>(threadIdx.x); i < kFlashRows * kVectors; i += kFlashThreads) {
    const int row = i / kVectors, column = i % kVectors * 8;
    Words words{};
    if (first + row < from.tokens && column < from.dim) {
      words = *reinterpret_cast<const Words*>(from.data + (first + row) * from.stride + column);
    }
    *reinterpret_cast<Words*>(tile.at(row, column)) = words;
  }
}

// The place of a lane in its warp's 16 rows.
struct LanePlace {
  int warp, group, t;
  __device__ static LanePlace mine() {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    return {static_cast<int>(threadIdx.x) / kWarp, lane / 4, lane % 4};
  }
  __device__ int row(int half) const { return warp * 16 + group + 8 * half; }  // of the block's tile
};

__device__ inline uint32_t pack_bf16(float low, float high) {
  return static_cast<uint32_t>(bf16_bits(low)) | static_cast<uint32_t>(bf16_bits(high)) << 16;
}

// A 16 x kColumns matrix of a warp, in f32.
template <int kColumns>
struct Block {
  float value[kColumns / 8][4];

  __device__ void clear() {
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) value[n][i] = 0;
    }
  }
  // Columns 16k .. 16k + 15 as the left operand of a product, rounded to bf16.
  __device__ void as_left(int k, uint32_t (&a)[4]) const {
    a[0] = pack_bf16(value[2 * k][0], value[2 * k][1]);
    a[1] = pack_bf16(value[2 * k][2], value[2 * k][3]);
    a[2] = pack_bf16(value[2 * k + 1][0], value[2 * k + 1][1]);
    a[3] = pack_bf16(value[2 * k + 1][2], value[2 * k + 1][3]);
  }
};

// The warp's 16 rows of a tile, columns 16k .. 16k + 15, as a left operand.
template <int kDim>
__device__ inline void left_of_tile(const Tile<kDim>& tile, const LanePlace& lane, int k, uint32_t (&a)[4]) {
  a[0] = tile.pair(lane.row(0), 16 * k + 2 * lane.t);
  a[1] = tile.pair(lane.row(1), 16 * k + 2 * lane.t);
  a[2] = tile.pair(lane.row(0), 16 * k + 2 * lane.t + 8);
  a[3] = tile.pair(lane.row(1), 16 * k + 2 * lane.t + 8);
}

// out [16, kFlashRows] += left (16 columns of it, the k-th) · tile^T (the same columns).
template <int kDim>
__device__ inline void multiply_rows(Block<kFlashRows>& out, const uint32_t (&a)[4], const Tile<kDim>& tile,
                                     int k, const LanePlace& lane) {
#pragma unroll
  for (int n = 0; n < kFlashRows / 8; ++n) {
    const uint32_t b[2] = {tile.pair(8 * n + lane.group, 16 * k + 2 * lane.t),
                           tile.pair(8 * n + lane.group, 16 * k + 2 * lane.t + 8)};
    mma_m16n8k16(out.value[n], a, b);
  }
}

// out [16, kDim] += left [16, kFlashRows] · tile.
template <int kDim>
__device__ inline void multiply_tile(Block<kDim>& out, const Block<kFlashRows>& left,
                                     const Tile<kDim>& tile) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int k = 0; k < kFlashRows / 16; ++k) {
    uint32_t a[4];
    left.as_left(k, a);
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      uint32_t b[2];
      load_matrices_transposed(b, tile.at(16 * k + lane % 16, 8 * n));
      mma_m16n8k16(out.value[n], a, b);
    }
  }
}

// Writes the warp's rows of a block, each times its factor, into a head of `out` [tokens, heads, dim].
template <int kDim>
__device__ inline void store_block(const Block<kDim>& block, uint16_t* out, int64_t stride, int dim,
                                   int64_t first, int64_t tokens, const LanePlace& lane, float factor0,
                                   float factor1) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int64_t row = first + lane.row(half);
    const float factor = half == 0 ? factor0 : factor1;
    if (row >= tokens) continue;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      const int column = 8 * n + 2 * lane.t;
      if (column >= dim) continue;
      *reinterpret_cast<uint32_t*>(out + row * stride + column) =
          pack_bf16(block.value[n][2 * half] * factor, block.value[n][2 * half + 1] * factor);
    }
  }
}

// The first token that token t sees.
__device__ inline int64_t first_key(const ScoreRule& rule, const int32_t* sequence_begin, int64_t t) {
  const int64_t begin = sequence_begin[t];
  return begin + rule.first_seen(t - begin);
}

// bf16, heads of whole 16-byte pieces up to 128, none of biased attention's extras.
inline bool serves_flash(const OpSite& site, const DeviceFacts& facts) {
  if (facts.kind != DeviceKind::cuda || !facts.has("bf16")) return false;
  const Shape &q = site.inputs[0].shape, &v = site.inputs[2].shape;
  return site.inputs[0].dtype == DType::bf16 && q[2] == v[2] && q[2] % 8 == 0 && q[2] <= 128;
}

// Calls body with 64 or 128, the columns of the tiles.
template <typename Body>
void with_tile_columns(int64_t dim, Body body) {
  if (dim <= 64) return body(std::integral_constant<int, 64>{});
  body(std::integral_constant<int, 128>{});
}

}  // namespace tenon::cuda
