// The sizes are for caches of 32 KiB and 512 KiB a core, the smallest of today's servers: a block of a (mc x
// kc) stays in the second; a panel of b (kc x 16 floats) nearly fits the first, and longer blocks of k mean
// fewer passes over the output, which measured better than a panel that fits.
#include "backend/cpu/gemm_blocking.h"

#include <algorithm>

#include "backend/cpu/gemm_bf16_tile.h"
#include "base/checked_math.h"
#include "device/kernel.h"

namespace tenon {
namespace {

constexpr int64_t kMostDepth = 640;
constexpr int64_t kMostBf16Depth = 768;
constexpr int64_t kRowsOfBlock = 96;       // a multiple of every target's sliver
constexpr int64_t kSharedBytes = 4 << 20;  // packed b, aimed at
constexpr int64_t kFewRows = 48;           // up to here packing b is a large part of the work
constexpr int64_t kDepthOfFewRows = 128;
constexpr int64_t kSmallOutput = 4096;  // elements
constexpr int64_t kLongDepth = 512;

int64_t float_bytes(int64_t count) {
  return round_up(count * 4, kArenaAlignment);
}

// Near-equal blocks of at most `most`, a multiple of `granularity` long.
int64_t even_block(int64_t count, int64_t most, int64_t granularity) {
  const int64_t blocks = std::max<int64_t>(1, ceil_div(count, most));
  return std::max(granularity, round_up(ceil_div(count, blocks), granularity));
}

// Columns of b packed at a time: all of them, or near-equal parts of `wanted` at most.
int64_t packed_columns(int64_t count, int64_t wanted, int64_t granularity) {
  if (count <= wanted) return round_up(std::max<int64_t>(count, 1), kMostPanelColumns);
  return even_block(count, std::max<int64_t>(256, wanted / granularity * granularity), granularity);
}

void split_rows(const GemmSizes& sizes, int threads, int64_t column_granularity, GemmBlocking& out) {
  out.split = GemmSplit::rows;
  out.kc = even_block(sizes.k, kMostDepth, 8);
  out.mc = kRowsOfBlock;
  out.nc = packed_columns(sizes.n, kSharedBytes / (4 * std::max<int64_t>(sizes.k, 1)), column_granularity);
  out.row_parts = static_cast<int>(std::clamp<int64_t>(sizes.m / (2 * kMostSliverRows), 1, threads));
  out.column_parts = threads / out.row_parts;
  out.shared_bytes = float_bytes((sizes.k + sizes.tail_k) * round_up(out.nc, kMostPanelColumns));
  out.packed_a_bytes = float_bytes(out.mc * (out.kc + sizes.tail_k));
  if (sizes.out_dtype != DType::f32 && sizes.k > out.kc) out.partial_bytes = float_bytes(out.mc * out.nc);
}

void split_columns(const GemmSizes& sizes, int threads, int64_t column_granularity, GemmBlocking& out) {
  out.split = GemmSplit::columns;
  out.kc = is_block_quantised(sizes.b_dtype) && sizes.b_transposed ? 256 : kDepthOfFewRows;
  out.mc = round_up(std::max<int64_t>(sizes.m, 1), kMostSliverRows);
  out.column_parts = threads;
  // Rows of b that are read where they lie leave room in the second cache for those asked for ahead.
  const int64_t most = sizes.b_dtype == DType::f32 && !sizes.b_transposed ? 256 : 512;
  const int64_t own = round_up(ceil_div(std::max<int64_t>(sizes.n, 1), threads), column_granularity);
  out.nc = std::min(own, most);
  out.packed_a_bytes = float_bytes(out.mc * out.kc);
  out.packed_b_bytes = float_bytes(out.nc * out.kc);
  if (sizes.out_dtype != DType::f32 && sizes.k > out.kc) out.partial_bytes = float_bytes(out.mc * out.nc);
}

void split_depth(const GemmSizes& sizes, int threads, GemmBlocking& out) {
  out.split = GemmSplit::depth;
  out.kc = is_block_quantised(sizes.b_dtype) && sizes.b_transposed ? 256 : kDepthOfFewRows;
  out.mc = kRowsOfBlock;
  out.nc = round_up(sizes.n, kMostPanelColumns);
  out.depth_parts = threads;
  out.packed_a_bytes = float_bytes(out.mc * out.kc);
  out.packed_b_bytes = float_bytes(out.nc * out.kc);
  out.partial_bytes = float_bytes(sizes.m * sizes.n);
}

// A panel of b (kc x 32 of 2 bytes) fits the first cache of 48 KiB that these machines have; a block of a
// stays in the second, of at least 1 MiB.
void split_bf16(const GemmSizes& sizes, int threads, int64_t column_granularity, GemmBlocking& out) {
  static_assert(kRowsOfBlock % kBf16DotRows == 0 && kRowsOfBlock % kBf16TileRows == 0);
  const int64_t depth = round_up(sizes.k, kBf16DepthUnit), tail = round_up(sizes.tail_k, kBf16DepthUnit);
  out.split = GemmSplit::rows;
  out.kc = even_block(sizes.k, kMostBf16Depth, kBf16DepthUnit);
  out.mc = kRowsOfBlock;
  out.nc = packed_columns(sizes.n, kSharedBytes / (2 * depth), column_granularity);
  out.row_parts = static_cast<int>(std::clamp<int64_t>(sizes.m / (2 * kBf16TileRows), 1, threads));
  out.column_parts = threads / out.row_parts;
  out.shared_bytes = float_bytes((depth + tail) / 2 * round_up(out.nc, kBf16PanelColumns));
  out.packed_a_bytes = float_bytes(out.mc * (out.kc + tail) / 2);
  if (sizes.out_dtype != DType::f32 && sizes.k > out.kc) out.partial_bytes = float_bytes(out.mc * out.nc);
}

}  // namespace

GemmBlocking gemm_blocking(const GemmSizes& sizes, int threads) {
  const bool whole_blocks = is_block_quantised(sizes.b_dtype) && !sizes.b_transposed;
  const int64_t column_granularity = whole_blocks ? 256 : kMostPanelColumns;
  GemmBlocking out;
  if (sizes.unit != GemmUnit::f32) {
    split_bf16(sizes, threads, column_granularity, out);
  } else if (sizes.tail_k > 0) {
    split_rows(sizes, threads, column_granularity, out);
  } else if (threads > 1 && !whole_blocks && sizes.m * sizes.n <= kSmallOutput && sizes.k >= kLongDepth) {
    split_depth(sizes, threads, out);
  } else if (sizes.m <= kFewRows) {
    split_columns(sizes, threads, column_granularity, out);
  } else {
    split_rows(sizes, threads, column_granularity, out);
  }
  return out;
}

int64_t gemm_workspace_bytes(const GemmSizes& sizes, int threads) {
  return gemm_blocking(sizes, threads).bytes(threads);
}

}  // namespace tenon
