// Products of Hopper's tensor cores (wgmma of the PTX manual): a warpgroup of four warps multiplies 64 rows
// with tiles in shared memory. A lane holds of each 8 columns of a result what mma.m16n8k16 gives it, its
// warp being one of four that have 16 rows each. Only code for sm_90a has them: elsewhere such a kernel
// stops.
#pragma once

#include "backend/cuda/flash.h"

#if defined(TENON_CUDA_EMULATED) || (defined(__CUDA_ARCH_FEAT_SM90_ALL) && __CUDA_ARCH__ == 900)
#define TENON_HAS_WARPGROUP_PRODUCTS 1
#else
#define TENON_HAS_WARPGROUP_PRODUCTS 0
#endif

namespace tenon::cuda {

inline constexpr int kGroupThreads = 128;
inline constexpr int kGroupRows = 64;  // of a result
inline constexpr int kPanel = 64;      // columns whose rows are 128 bytes, the extent of the swizzle
inline constexpr int kTileAlignment = 1024;

// kRows rows of kDim columns of bf16, one panel after the other. The 16-byte pieces of a row lie in an order
// that depends on the row (the 128-byte swizzle), so that eight rows of a column fall into different banks.
template <int kRows, int kDim>
struct SwizzledTile {
  static constexpr int kHalves = kRows * kDim;
  static constexpr size_t kBytes = sizeof(uint16_t) * kHalves;
  static constexpr int kPanelHalves = kRows * kPanel;
  uint16_t* halves;

  __device__ uint16_t* at(int row, int column) const {
    const int piece = column % kPanel / 8 ^ row % 8;
    return halves + column / kPanel * kPanelHalves + row * kPanel + piece * 8 + column % 8;
  }
};

// Starts to fill a tile with rows first .. first + kRows by kThreads threads; zeros past the last row and
// column.
template <int kThreads, int kRows, int kDim>
__device__ inline void load_swizzled(const SwizzledTile<kRows, kDim>& tile, const HeadRows& from, int first) {
  constexpr int kVectors = kDim / 8;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kVectors; i += kThreads) {
    const int row = i / kVectors, column = i % kVectors * 8;
    const bool exists = first + row < from.tokens && column < from.dim;
    const uint16_t* source = from.data + static_cast<int64_t>(first + row) * from.stride + column;
    copy_async(tile.at(row, column), exists ? source : from.data, exists);
  }
}

#ifdef TENON_CUDA_EMULATED

inline void publish_tiles() {}
template <int kColumns>
void settle(Block<kColumns>&) {}
inline void begin_products() {}
inline void end_products() {}
template <int kLeft>
void wait_for_products() {}

// out [64, kColumns] += rows first .. first + 63 of `a` · (the first kColumns rows of b)^T, columns 16k on.
template <int kColumns, int kRowsA, int kRowsB, int kDim>
void multiply_tiles(Block<kColumns>& out, const SwizzledTile<kRowsA, kDim>& a, int first,
                    const SwizzledTile<kRowsB, kDim>& b, int k, bool add) {
  if (!add) out.clear();
  const int lane = static_cast<int>(threadIdx.x) % kGroupThreads, warp = lane / kWarp;
  for (int n = 0; n < kColumns / 8; ++n) {
    for (int i = 0; i < 4; ++i) {
      const int row = first + warp * 16 + lane % kWarp / 4 + i / 2 * 8, column = 8 * n + lane % 4 * 2 + i % 2;
      float total = 0;
      for (int c = 16 * k; c < 16 * k + 16; ++c)
        total += bf16_value(*a.at(row, c)) * bf16_value(*b.at(column, c));
      out.value[n][i] += total;
    }
  }
}

// out [64, kDim] += a (16 columns, as left operands) · rows 16k .. 16k + 15 of b.
template <int kRows, int kDim>
void multiply_tile(Block<kDim>& out, const uint32_t (&a)[4], const SwizzledTile<kRows, kDim>& b, int k) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  uint32_t all[kWarp][4];
  const std::byte* table = emulator::exchange(a, sizeof(a));
  for (int l = 0; l < kWarp; ++l) std::memcpy(all[l], table + 64 * l, sizeof(a));
  const auto left = [&](int half, int c) {
    const uint32_t word = all[lane / 4 * 4 + c % 8 / 2][half + c / 8 * 2];
    return bf16_value(static_cast<uint16_t>(c % 2 == 0 ? word : word >> 16));
  };
  for (int n = 0; n < kDim / 8; ++n) {
    for (int i = 0; i < 4; ++i) {
      float total = 0;
      for (int c = 0; c < 16; ++c)
        total += left(i / 2, c) * bf16_value(*b.at(16 * k + c, 8 * n + lane % 4 * 2 + i % 2));
      out.value[n][i] += total;
    }
  }
}

#elif TENON_HAS_WARPGROUP_PRODUCTS

// Tiles that this thread's copies filled become visible to products, which read through another path.
__device__ inline void publish_tiles() {
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}
// Products run on their own: begin before the first of a group, end after its last, wait until at most
// `kLeft` groups are on their way. Until then their operands and results are left alone.
__device__ inline void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
}
__device__ inline void end_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
}
template <int kLeft>
__device__ inline void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(kLeft) : "memory");
}

// Keeps the compiler from using a result before the wait that precedes this.
template <int kColumns>
__device__ inline void settle(Block<kColumns>& block) {
#pragma unroll
  for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(block.value[n][i]) : : "memory");
  }
}

// The PTX manual's matrix descriptor: an address, two strides in bytes, the 128-byte swizzle.
__device__ inline uint64_t tile_descriptor(const uint16_t* start, uint32_t leading, uint32_t stride) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(start));
  return static_cast<uint64_t>((address & 0x3ffff) >> 4) | static_cast<uint64_t>(leading >> 4) << 16 |
         static_cast<uint64_t>(stride >> 4) << 32 | uint64_t{1} << 62;
}

#define TENON_FOUR(n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define TENON_THIRTY_TWO(n)                                                                  \
  TENON_FOUR(n), TENON_FOUR(n + 1), TENON_FOUR(n + 2), TENON_FOUR(n + 3), TENON_FOUR(n + 4), \
      TENON_FOUR(n + 5), TENON_FOUR(n + 6), TENON_FOUR(n + 7)
#define TENON_NAMES_32                                                                              \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25," \
  "%26,%27,%28,%29,%30,%31}"
#define TENON_NAMES_64                                                                               \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,"  \
  "%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49," \
  "%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"

// d += a · b^T, both tiles with their columns multiplied.
__device__ inline void product(float (&d)[8][4], uint64_t a, uint64_t b, int add) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " TENON_NAMES_32 ", %32, %33, p, 1, 1, 0, 0; }"
      : TENON_THIRTY_TWO(0)
      : "l"(a), "l"(b), "r"(add));
}
__device__ inline void product(float (&d)[16][4], uint64_t a, uint64_t b, int add) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " TENON_NAMES_64 ", %64, %65, p, 1, 1, 0, 0; }"
      : TENON_THIRTY_TWO(0), TENON_THIRTY_TWO(8)
      : "l"(a), "l"(b), "r"(add));
}
// d += a · b, the tile with its rows multiplied.
__device__ inline void product(float (&d)[8][4], const uint32_t (&a)[4], uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " TENON_NAMES_32
               ", {%32,%33,%34,%35}, %36, 1, 1, 1, 1;"
               : TENON_THIRTY_TWO(0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ inline void product(float (&d)[16][4], const uint32_t (&a)[4], uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " TENON_NAMES_64
               ", {%64,%65,%66,%67}, %68, 1, 1, 1, 1;"
               : TENON_THIRTY_TWO(0), TENON_THIRTY_TWO(8)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#undef TENON_FOUR
#undef TENON_THIRTY_TWO
#undef TENON_NAMES_32
#undef TENON_NAMES_64

inline constexpr uint32_t kEightRows = 8 * kPanel * sizeof(uint16_t);

// out [64, kColumns] += rows first .. first + 63 of `a` · (the first kColumns rows of b)^T, columns 16k on;
// without `add`, out is what was multiplied alone.
template <int kColumns, int kRowsA, int kRowsB, int kDim>
__device__ inline void multiply_tiles(Block<kColumns>& out, const SwizzledTile<kRowsA, kDim>& a, int first,
                                      const SwizzledTile<kRowsB, kDim>& b, int k, bool add) {
  const int panel = k * 16 / kPanel, column = k * 16 % kPanel;
  const uint16_t* left = a.halves + panel * a.kPanelHalves + first * kPanel + column;
  const uint16_t* right = b.halves + panel * b.kPanelHalves + column;
  product(out.value, tile_descriptor(left, 0, kEightRows), tile_descriptor(right, 0, kEightRows), add);
}

// out [64, kDim] += a (16 columns, as left operands) · rows 16k .. 16k + 15 of b.
template <int kRows, int kDim>
__device__ inline void multiply_tile(Block<kDim>& out, const uint32_t (&a)[4],
                                     const SwizzledTile<kRows, kDim>& b, int k) {
  const uint16_t* right = b.halves + 16 * k * kPanel;
  product(out.value, a, tile_descriptor(right, b.kPanelHalves * sizeof(uint16_t), kEightRows));
}

#endif

// Whether a device's code has these products, and whether the attention kernels on them serve a site.
inline bool serves_warpgroups(const OpSite& site, const DeviceFacts& facts) {
  return facts.has("sm_90") && serves_flash(site, facts);
}

#if TENON_HAS_WARPGROUP_PRODUCTS

// The first address of dynamic shared memory where a tile may begin; kTileAlignment bytes more are asked for.
__device__ inline uint16_t* first_tile_place(uint16_t* shared) {
#ifdef TENON_CUDA_EMULATED
  return shared;
#else
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  return shared + (kTileAlignment - address % kTileAlignment) % kTileAlignment / sizeof(uint16_t);
#endif
}

// out [64, kDim] += left [64, kColumns], rounded to bf16 · the rows of a tile. `operands` hold the left side
// until the products are done.
template <int kColumns, int kDim>
struct LeftOperands {
  uint32_t words[kColumns / 16][4];
  __device__ explicit LeftOperands(const Block<kColumns>& left) {
#pragma unroll
    for (int k = 0; k < kColumns / 16; ++k) left.as_left(k, words[k]);
  }
  __device__ void multiply(Block<kDim>& out, const SwizzledTile<kColumns, kDim>& tile) const {
#pragma unroll
    for (int k = 0; k < kColumns / 16; ++k) multiply_tile(out, words[k], tile, k);
  }
};

// out [64, kColumns] = rows first .. first + 63 of a · b^T.
template <int kColumns, int kRowsA, int kDim>
__device__ inline void multiply_all(Block<kColumns>& out, const SwizzledTile<kRowsA, kDim>& a, int first,
                                    const SwizzledTile<kColumns, kDim>& b) {
#pragma unroll
  for (int k = 0; k < kDim / 16; ++k) multiply_tiles(out, a, first, b, k, k > 0);
}

#endif

}  // namespace tenon::cuda
