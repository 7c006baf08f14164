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

// The place of a lane in its warp, and of the warp's rows in its block's tile.
struct LanePlace {
  int warp, lane, group, t;
  __device__ static LanePlace mine() {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    return {static_cast<int>(threadIdx.x) / kWarp, lane, lane / 4, lane % 4};
  }
  __device__ int row(int half) const { return warp * 16 + group + 8 * half; }
};

template <int kDim>
struct Tile {
  static constexpr int kStride = kDim + kRowPad;
  static constexpr int kHalves = kFlashRows * kStride;
  static constexpr size_t kBytes = sizeof(uint16_t) * kHalves;
  uint16_t* rows;

  __device__ uint16_t* at(int row, int column) const { return rows + row * kStride + column; }

  // The warp's own 16 rows, columns 16k .. 16k + 15, as a left operand.
  __device__ void left(const LanePlace& p, int k, uint32_t (&a)[4]) const {
    load_matrices(a, at(p.warp * 16 + p.lane % 16, 16 * k + p.lane / 16 * 8));
  }
  // Rows 8n .. 8n + 15, columns 16k .. 16k + 15, as right operands of a product with their transpose: b[0],
  // b[1] for the first eight rows, b[2], b[3] for the others.
  __device__ void right_of_rows(const LanePlace& p, int n, int k, uint32_t (&b)[4]) const {
    load_matrices(b, at(8 * n + p.lane / 16 * 8 + p.lane % 8, 16 * k + p.lane / 8 % 2 * 8));
  }
  // Rows 16k .. 16k + 15, columns 8n .. 8n + 15, as right operands: b[0], b[1] for the first eight columns.
  __device__ void right(const LanePlace& p, int n, int k, uint32_t (&b)[4]) const {
    load_matrices_transposed(b, at(16 * k + p.lane % 16, 8 * n + p.lane / 16 * 8));
  }
};

// Rows of one head of a tensor [tokens, heads, dim].
struct HeadRows {
  const uint16_t* data;
  int stride;  // halves from a token to the next
  int dim;     // a multiple of 8
  int tokens;
};

__device__ inline HeadRows head_rows(const Tensor& t, int heads, int head, int dim, int tokens) {
  return {reinterpret_cast<const uint16_t*>(t.data) + static_cast<int64_t>(head) * dim, heads * dim, dim,
          tokens};
}

// Starts to fill a tile with rows first .. first + kFlashRows; zeros past the last row and column.
template <int kDim>
__device__ inline void load_tile(const Tile<kDim>& tile, const HeadRows& from, int first) {
  constexpr int kVectors = kDim / 8;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kFlashRows * kVectors; i += kFlashThreads) {
    const int row = i / kVectors, column = i % kVectors * 8;
    const bool exists = first + row < from.tokens && column < from.dim;
    const uint16_t* source = from.data + static_cast<int64_t>(first + row) * from.stride + column;
    copy_async(tile.at(row, column), exists ? source : from.data, exists);
  }
}

__device__ inline uint32_t pack_bf16(float low, float high) {
#ifdef TENON_CUDA_EMULATED
  return static_cast<uint32_t>(bf16_bits(low)) | static_cast<uint32_t>(bf16_bits(high)) << 16;
#else
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
#endif
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
  __device__ void multiply_add(int n, const uint32_t (&a)[4], const uint32_t (&b)[4]) {
    const uint32_t low[2] = {b[0], b[1]}, high[2] = {b[2], b[3]};
    mma_m16n8k16(value[n], a, low);
    mma_m16n8k16(value[n + 1], a, high);
  }
};

// out [16, kFlashRows] += left (the k-th 16 columns of it) · tile^T (the same columns).
template <int kDim>
__device__ inline void multiply_rows(Block<kFlashRows>& out, const uint32_t (&a)[4], const Tile<kDim>& tile,
                                     int k, const LanePlace& place) {
#pragma unroll
  for (int n = 0; n < kFlashRows / 8; n += 2) {
    uint32_t b[4];
    tile.right_of_rows(place, n, k, b);
    out.multiply_add(n, a, b);
  }
}

// out [16, kDim] += left [16, kFlashRows] · tile.
template <int kDim>
__device__ inline void multiply_tile(Block<kDim>& out, const Block<kFlashRows>& left, const Tile<kDim>& tile,
                                     const LanePlace& place) {
#pragma unroll
  for (int k = 0; k < kFlashRows / 16; ++k) {
    uint32_t a[4];
    left.as_left(k, a);
#pragma unroll
    for (int n = 0; n < kDim / 8; n += 2) {
      uint32_t b[4];
      tile.right(place, n, k, b);
      out.multiply_add(n, a, b);
    }
  }
}

// Writes the warp's rows of a block, each times its factor, into a head of `out`, laid out as `like`.
template <int kDim>
__device__ inline void store_block(const Block<kDim>& block, const Tensor& out, const HeadRows& like,
                                   int head, int first, const LanePlace& place, float factor0,
                                   float factor1) {
  uint16_t* data = reinterpret_cast<uint16_t*>(out.data) + static_cast<int64_t>(head) * like.dim;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first + place.row(half);
    const float factor = half == 0 ? factor0 : factor1;
    if (row >= like.tokens) continue;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      const int column = 8 * n + 2 * place.t;
      if (column >= like.dim) continue;
      *reinterpret_cast<uint32_t*>(data + static_cast<int64_t>(row) * like.stride + column) =
          pack_bf16(block.value[n][2 * half] * factor, block.value[n][2 * half + 1] * factor);
    }
  }
}

// Which rows a block has, of a grid whose first axis is heads and whose second is tiles of rows: the last
// tile of every head comes first, since its rows see most, so that what is left at the end is short.
__device__ inline int longest_first() {
  return static_cast<int>(gridDim.y - 1 - blockIdx.y);
}

// The first token that token t sees.
__device__ inline int first_key(const ScoreRule& rule, const int32_t* sequence_begin, int t) {
  const int begin = sequence_begin[t];
  return begin + static_cast<int>(rule.first_seen(t - begin));
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
