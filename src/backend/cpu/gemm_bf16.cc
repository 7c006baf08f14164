#include "backend/cpu/gemm_bf16.h"

#include "backend/cpu/gemm_bf16_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/gemm_bf16.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <array>

#include "backend/cpu/gemm_bf16_pack-inl.h"
#include "backend/cpu/gemm_tile-inl.h"
#include "base/check.h"
#include "base/checked_math.h"
#include "base/threads.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// A unit: its tile, the rows of one, and the depth that it takes at a time.
struct Unit {
  Bf16Tile multiply;
  int64_t rows, depth;
};

Unit unit_of(const Gemm& g) {
  if (g.unit == GemmUnit::bf16_tiles) return {multiply_bf16_tiles, kBf16TileRows, kBf16DepthUnit};
  return {multiply_bf16_pairs, kBf16DotRows, 2};
}

// b's panels, those of the tail behind them.
struct Bf16Panels {
  uint32_t* main;
  uint32_t* tail;
  int64_t main_stride, tail_stride;  // words from panel to panel
};

Bf16Panels panels_of(const Gemm& g, const GemmBlocking& blocking, std::span<std::byte> workspace) {
  const int64_t depth = round_up(g.k, kBf16DepthUnit), tail = round_up(g.tail.k, kBf16DepthUnit);
  uint32_t* main = reinterpret_cast<uint32_t*>(workspace.data());
  return {main, main + depth / 2 * round_up(blocking.nc, kBf16PanelColumns), depth / 2 * kBf16PanelColumns,
          tail / 2 * kBf16PanelColumns};
}

// Each thread packs whole panels where k is innermost in b's rows, else rows of b, so that it reads whole
// ones.
void pack_operand(const GemmMatrix& b, int64_t k, Range columns, uint32_t* out, int64_t panel_stride,
                  int thread, int threads) {
  if (b.transposed) {
    const Range part = split_range(columns.size(), threads, thread, kBf16PanelColumns);
    if (part.size() <= 0) return;
    pack_pairs(b, {columns.begin + part.begin, columns.begin + part.end}, {0, k},
               out + part.begin / kBf16PanelColumns * panel_stride, panel_stride);
  } else {
    const Range depth = split_range(k, threads, thread, kBf16DepthUnit);
    if (depth.size() <= 0) return;
    pack_pairs(b, columns, depth, out + depth.begin / 2 * kBf16PanelColumns, panel_stride);
  }
}

// Rows of a as a unit reads them: where they lie, or packed into `space`.
struct Bf16Rows {
  const uint16_t* data;
  int64_t stride;
};

// Strides of whole pages would put all rows of a tile into one set of the first cache.
Bf16Rows rows_of(const GemmMatrix& a, Range rows, Range depth, const Unit& unit, uint16_t* space) {
  const bool whole = rows.size() % unit.rows == 0 && depth.size() % unit.depth == 0;
  if (whole && !a.transposed && a.dtype == DType::bf16 && a.stride % 1024 != 0) {
    return {reinterpret_cast<const uint16_t*>(matrix_row(a, rows.begin)) + depth.begin, a.stride};
  }
  const int64_t padded = round_up(depth.size(), kBf16DepthUnit);
  pack_bf16_rows(a, rows, depth, round_up(rows.size(), unit.rows), padded, space);
  return {space, padded};
}

// One block of rows and depth against panels for `columns` output columns, stored from (0, 0) of `to` on. The
// tail has rows where it belongs to the block.
struct Bf16Block {
  int64_t rows, columns;
  Bf16Rows a, tail_a;
  const uint32_t *b, *tail_b;
  int64_t depth, tail_depth;
};

void multiply_block(const Gemm& g, const Unit& unit, const Bf16Panels& panels, const Bf16Block& block,
                    const TileStore& to) {
  HWY_ALIGN float sums[kBf16TileRows * kBf16PanelColumns];
  std::array<Bf16Segment, 2> segments;  // the tail first, so that its scale leaves the rest alone
  const std::span<const Bf16Segment> used(segments.data() + (block.tail_depth > 0 ? 0 : 1),
                                          segments.data() + 2);
  for (int64_t column = 0; column < block.columns; column += kBf16PanelColumns) {
    const int64_t panel = column / kBf16PanelColumns;
    const int64_t width = std::min(kBf16PanelColumns, block.columns - column);
    for (int64_t row = 0; row < block.rows; row += unit.rows) {
      segments[0] = {block.tail_a.data + row * block.tail_a.stride, block.tail_a.stride,
                     block.tail_b + panel * panels.tail_stride, block.tail_depth, g.tail.alpha};
      segments[1] = {block.a.data + row * block.a.stride, block.a.stride,
                     block.b + panel * panels.main_stride, block.depth};
      unit.multiply(used, sums);
      store_tile(sums, kBf16PanelColumns, row, column, std::min(unit.rows, block.rows - row), width, to);
    }
  }
}

// Rows and columns of one thread; `origin` is the first column of the panels.
void multiply_part(const Gemm& g, const GemmBlocking& blocking, Range rows, Range columns, int64_t origin,
                   const Bf16Panels& panels, std::byte* space) {
  const Unit unit = unit_of(g);
  uint16_t* packed = reinterpret_cast<uint16_t*>(space);
  float* partial = reinterpret_cast<float*>(space + blocking.packed_a_bytes);
  const int64_t panel = (columns.begin - origin) / kBf16PanelColumns;
  for (int64_t row = rows.begin; row < rows.end; row += blocking.mc) {
    const Range taken{row, std::min(row + blocking.mc, rows.end)};
    for (int64_t p = 0; p < g.k; p += blocking.kc) {
      const Range depth{p, std::min(p + blocking.kc, g.k)};
      Bf16Block block{.rows = taken.size(), .columns = columns.size()};
      block.a = rows_of(g.a, taken, depth, unit, packed);
      block.b = panels.main + panel * panels.main_stride + p / 2 * kBf16PanelColumns;
      block.depth = round_up(depth.size(), unit.depth);
      if (g.tail.k > 0 && depth.end == g.k) {
        block.tail_a = rows_of(g.tail.a, taken, {0, g.tail.k}, unit, packed + blocking.mc * blocking.kc);
        block.tail_b = panels.tail + panel * panels.tail_stride;
        block.tail_depth = round_up(g.tail.k, unit.depth);
      }
      multiply_block(g, unit, panels, block,
                     block_store(g, row, columns.begin, depth, partial, columns.size()));
    }
  }
}

void multiply_bf16(const Gemm& g, const GemmBlocking& blocking, std::span<std::byte> workspace,
                   ThreadPool& threads) {
  CHECK(g.k > 0 && (g.tail.k == 0 || g.alpha == 1.0f));
  const Bf16Panels panels = panels_of(g, blocking, workspace);
  for (int64_t begin = 0; begin < g.n; begin += blocking.nc) {
    const Range block{begin, std::min(begin + blocking.nc, g.n)};
    threads.run([&](int thread) {
      pack_operand(g.b, g.k, block, panels.main, panels.main_stride, thread, threads.size());
      if (g.tail.k > 0) {
        pack_operand(g.tail.b, g.tail.k, block, panels.tail, panels.tail_stride, thread, threads.size());
      }
    });
    threads.run([&](int thread) {
      if (thread >= blocking.row_parts * blocking.column_parts) return;
      const Range rows = split_range(g.m, blocking.row_parts, thread / blocking.column_parts, kBf16TileRows);
      const Range part =
          split_range(block.size(), blocking.column_parts, thread % blocking.column_parts, kBf16PanelColumns);
      if (rows.size() <= 0 || part.size() <= 0) return;
      if (g.unit == GemmUnit::bf16_tiles) begin_bf16_tiles();
      multiply_part(g, blocking, rows, {begin + part.begin, begin + part.end}, begin, panels,
                    workspace.data() + blocking.shared_bytes + blocking.thread_bytes() * thread);
      if (g.unit == GemmUnit::bf16_tiles) end_bf16_tiles();
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {
HWY_EXPORT(multiply_bf16);
}  // namespace

void gemm_bf16(const Gemm& g, const GemmBlocking& blocking, std::span<std::byte> workspace,
               ThreadPool& threads) {
  HWY_DYNAMIC_DISPATCH(multiply_bf16)(g, blocking, workspace, threads);
}

}  // namespace tenon
#endif
