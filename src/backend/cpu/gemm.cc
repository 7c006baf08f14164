#include "backend/cpu/gemm.h"

#include "backend/cpu/gemm_bf16.h"
#include "backend/cpu/gemm_blocking.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/gemm.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "backend/cpu/gemm_tile-inl.h"
#include "backend/cpu/work_queue.h"
#include "base/check.h"
#include "base/checked_math.h"
#include "base/threads.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

constexpr int64_t kBlocksQueued = 4;  // blocks of rows for each thread, from which on they are queued
constexpr int64_t kSliversAhead = 3, kDepthAhead = 64;  // from here on asking for panels ahead pays
constexpr int64_t kMostRows = 96, kPartDepth = 320;  // of a block whose sums are kept between parts of depth
constexpr int64_t kDirectColumns = 64;               // up to here a's rows are read where they lie

// The workspace of one thread.
struct ThreadSpace {
  float* packed_a;
  float* packed_b;
  float* partial;
};

ThreadSpace thread_space(const GemmBlocking& blocking, std::span<std::byte> workspace, int thread) {
  std::byte* begin = workspace.data() + blocking.shared_bytes + blocking.thread_bytes() * thread;
  return {reinterpret_cast<float*>(begin), reinterpret_cast<float*>(begin + blocking.packed_a_bytes),
          reinterpret_cast<float*>(begin + blocking.packed_a_bytes + blocking.packed_b_bytes)};
}

// The panels of a block of b, from its first k and column on: packed, or where they lie.
struct Panels {
  const float* data;
  int64_t panel_stride;  // floats from panel to panel
  int64_t row_stride;
  int64_t ahead = 0;  // floats from a panel to the one that is asked for while it is multiplied; 0: none
};

// `depth` rows of a panel, for sliver `index` of `slivers`. Together these ask for the panel `ahead` floats
// on: line by line, or at once where its rows do not lie together.
HWY_INLINE Panel panel_asking(const float* b, int64_t stride, int64_t depth, int64_t ahead, int64_t index,
                              int64_t slivers) {
  if (stride == kPanel) return {b, stride, b + ahead + index * depth * kPanel / slivers, kPanel / slivers};
  const int64_t rows = ceil_div(depth, slivers);
  const float* end = b + ahead + std::min(depth, rows * (index + 1)) * stride;
  for (const float* row = b + ahead + rows * index * stride; row < end; row += stride) {
    __builtin_prefetch(row, 0, 2);
    if constexpr (kPanel > 16) __builtin_prefetch(row + 16, 0, 2);
  }
  return {b, stride};
}

// Depth of the tail that a block of k brings: the last one all of it.
int64_t tail_depth(const Gemm& g, Range depth) {
  return depth.end == g.k ? g.tail.k : 0;
}

// Rows of a over a block of k as slivers, the tail's behind them; alpha is that of b's part, 1.
void pack_left(const Gemm& g, Range rows, Range depth, float* out) {
  const int64_t tail = tail_depth(g, depth), stride = (depth.size() + tail) * kSliver;
  pack_a(g.a, rows, depth, out, stride);
  if (tail == 0) return;
  out += depth.size() * kSliver;
  pack_a(g.tail.a, rows, {0, tail}, out, stride);
  if (g.tail.alpha == 1.0f) return;
  for (int64_t row = 0; row < rows.size(); row += kSliver, out += stride) {
    for (int64_t i = 0; i < tail * kSliver; ++i) out[i] *= g.tail.alpha;
  }
}

// The store of one panel's columns, and of a part of the depth of its sums: parts before the last are kept in
// `sums`, kPanel floats a row. Column 0 is the panel's first.
TileStore panel_store(const TileStore& to, int64_t column, Range part, int64_t depth, float* sums) {
  const GemmMatrix kept{reinterpret_cast<std::byte*>(sums), DType::f32, kPanel};
  TileStore out = to;
  out.before = part.begin == 0 ? shifted(to.before, 0, column) : kept;
  if (part.end == depth) {
    out.out += column * (to.dtype == DType::bf16 ? 2 : 4);
  } else {
    out.out = reinterpret_cast<std::byte*>(sums);
    out.dtype = DType::f32;
    out.stride = kPanel;
  }
  return out;
}

// Rows of a, as sliver_at(row, k), against one panel, whose depth is taken in parts that leave it in the
// first cache: by the depth alone, since how many rows come together differs from run to run.
template <typename SliverAt>
HWY_INLINE void multiply_panel(SliverAt sliver_at, Range rows, int64_t depth, Panel panel, int64_t ahead,
                               int64_t column, int64_t width, const TileStore& to) {
  HWY_ALIGN float sums[kMostRows * kPanel];
  const int64_t slivers = ceil_div(rows.size(), kSliver);
  const int64_t step = ceil_div(depth, ceil_div(depth, kPartDepth));
  const bool asks = ahead > 0 && slivers >= kSliversAhead && depth >= kDepthAhead;
  for (int64_t p = 0; p < depth; p += step) {
    const Range part{p, std::min(p + step, depth)};
    const TileStore store = panel_store(to, column, part, depth, sums);
    const float* b = panel.data + p * panel.stride;
    for (int64_t row = rows.begin; row < rows.end; row += kSliver) {
      const int64_t index = (row - rows.begin) / kSliver;
      const Panel own =
          asks ? panel_asking(b, panel.stride, part.size(), ahead, index, slivers) : Panel{b, panel.stride};
      multiply_and_store(part.size(), sliver_at(row, p), own, row, 0, std::min(kSliver, rows.end - row),
                         width, store);
    }
  }
}

// Multiplies rows x depth of a, and the tail that comes with them, by panels for `columns` output columns
// (the store's origin is the first of each).
void multiply_block(const Gemm& g, Range rows, Range depth, int64_t columns, Panels b, float* packed_a,
                    const TileStore& to) {
  CHECK(rows.size() <= kMostRows);
  const int64_t whole_depth = depth.size() + tail_depth(g, depth);
  const bool direct =
      columns <= kDirectColumns && g.a.dtype == DType::f32 && !g.a.transposed && whole_depth == depth.size();
  const int64_t whole = direct ? rows.size() / kSliver * kSliver : 0;  // rows of whole slivers, read in place
  pack_left(g, {rows.begin + whole, rows.end}, depth, packed_a);
  const auto packed = [&](int64_t row, int64_t p) HWY_ATTR {
    return PackedSliver{packed_a + (row - whole) * whole_depth + p * kSliver};
  };
  const auto in_place = [&](int64_t row, int64_t p) HWY_ATTR {
    const float* a = reinterpret_cast<const float*>(matrix_row(g.a, rows.begin + row));
    return StridedSliver{a + depth.begin + p, g.a.stride};
  };
  for (int64_t column = 0; column < columns; column += kPanel) {
    const Panel panel{b.data + column / kPanel * b.panel_stride, b.row_stride};
    const int64_t width = std::min(kPanel, columns - column);
    multiply_panel(in_place, {0, whole}, whole_depth, panel, b.ahead, column, width, to);
    multiply_panel(packed, {whole, rows.size()}, whole_depth, panel, b.ahead, column, width, to);
  }
}

// Columns of b are cut at multiples of this: whole panels, and whole blocks where those lie along its rows.
int64_t columns_of_blocks(const GemmMatrix& b) {
  return is_block_quantised(b.dtype) && !b.transposed ? 256 : kPanel;
}

// Rows and panels of one thread against columns [begin, begin + count) of b, packed whole in `packed_b`: each
// panel has b's rows and behind them the tail's, so that the sums of both meet in registers.
void multiply_shared(const Gemm& g, const GemmBlocking& blocking, Range rows, Range columns, int64_t origin,
                     const float* packed_b, const ThreadSpace& space) {
  const int64_t panel_rows = g.k + g.tail.k;
  for (int64_t row = rows.begin; row < rows.end; row += blocking.mc) {
    const Range block{row, std::min(row + blocking.mc, rows.end)};
    for (int64_t p = 0; p < g.k; p += blocking.kc) {
      const Range depth{p, std::min(p + blocking.kc, g.k)};
      const TileStore to = block_store(g, row, columns.begin, depth, space.partial, columns.size());
      const float* panels = packed_b + (columns.begin - origin) / kPanel * kPanel * panel_rows + p * kPanel;
      const int64_t stride = panel_rows * kPanel;
      multiply_block(g, block, depth, columns.size(), {panels, stride, kPanel, stride}, space.packed_a, to);
    }
  }
}

// All rows against columns [columns.begin, columns.end) of b, packed. Many rows are taken as threads come
// free, few are cut evenly.
void multiply_panels(const Gemm& g, const GemmBlocking& blocking, Range columns,
                     std::span<std::byte> workspace, ThreadPool& threads) {
  const float* packed_b = reinterpret_cast<const float*>(workspace.data());
  const int size = threads.size();
  WorkQueue queue(g.m);
  const bool queued = size > 1 && g.m >= kBlocksQueued * size * blocking.mc;
  threads.run([&](int thread) {
    const ThreadSpace space = thread_space(blocking, workspace, thread);
    if (queued) {
      for (Range rows; (rows = queue.take_several(blocking.mc, kSliver, size)).size() > 0;) {
        multiply_shared(g, blocking, rows, columns, columns.begin, packed_b, space);
      }
      return;
    }
    if (thread >= blocking.row_parts * blocking.column_parts) return;
    const Range rows = split_range(g.m, blocking.row_parts, thread / blocking.column_parts, kSliver);
    Range own = split_range(columns.size(), blocking.column_parts, thread % blocking.column_parts, kPanel);
    if (rows.size() <= 0 || own.size() <= 0) return;
    own = {columns.begin + own.begin, columns.begin + own.end};
    multiply_shared(g, blocking, rows, own, columns.begin, packed_b, space);
  });
}

void multiply_by_rows(const Gemm& g, const GemmBlocking& blocking, std::span<std::byte> workspace,
                      ThreadPool& threads) {
  float* packed_b = reinterpret_cast<float*>(workspace.data());
  const int64_t panel_rows = g.k + g.tail.k;
  for (int64_t begin = 0; begin < g.n; begin += blocking.nc) {
    const int64_t end = std::min(begin + blocking.nc, g.n);
    threads.run([&](int thread) {
      if (g.tail.k > 0) {
        const Range part = split_range(end - begin, threads.size(), thread, columns_of_blocks(g.tail.b));
        pack_b(g.tail.b, {begin + part.begin, begin + part.end}, {0, g.tail.k}, g.tail.round_b,
               packed_b + part.begin * panel_rows + g.k * kPanel, panel_rows * kPanel);
      }
      if (g.b.transposed) {  // each thread packs whole panels
        const Range part = split_range(end - begin, threads.size(), thread, kPanel);
        if (part.size() <= 0) return;
        pack_b(g.b, {begin + part.begin, begin + part.end}, {0, g.k}, g.round_b,
               packed_b + part.begin * panel_rows, panel_rows * kPanel);
      } else {  // each thread packs rows of b, so that it reads whole rows
        const Range depth = split_range(g.k, threads.size(), thread);
        if (depth.size() <= 0) return;
        pack_b(g.b, {begin, end}, depth, g.round_b, packed_b + depth.begin * kPanel, panel_rows * kPanel);
      }
    });
    multiply_panels(g, blocking, {begin, end}, workspace, threads);
  }
}

// All rows against one block of b, in slices of rows.
void multiply_rows_of_block(const Gemm& g, const GemmBlocking& blocking, Range columns, Range depth,
                            Panels panels, const ThreadSpace& space) {
  for (int64_t row = 0; row < g.m; row += blocking.mc) {
    const Range rows{row, std::min(row + blocking.mc, g.m)};
    const TileStore to = block_store(g, row, columns.begin, depth, space.partial, columns.size());
    multiply_block(g, rows, depth, columns.size(), panels, space.packed_a, to);
  }
}

// All rows against `columns` of b, block by block. With few rows packing b would cost as much as multiplying
// it: where its rows lie as a panel wants them they are read in place.
void multiply_own_columns(const Gemm& g, const GemmBlocking& blocking, Range columns, Range depth,
                          const ThreadSpace& space) {
  const bool direct = g.b.dtype == DType::f32 && !g.b.transposed && !g.round_b;
  for (int64_t begin = columns.begin; begin < columns.end; begin += blocking.nc) {
    const int64_t end = std::min(begin + blocking.nc, columns.end);
    const int64_t packed_begin = direct ? begin + (end - begin) / kPanel * kPanel : begin;
    for (int64_t p = depth.begin; p < depth.end; p += blocking.kc) {
      const Range part{p, std::min(p + blocking.kc, depth.end)};
      if (packed_begin > begin) {
        const float* b = reinterpret_cast<const float*>(matrix_row(g.b, p)) + begin;
        const int64_t ahead = part.end < depth.end ? part.size() * g.b.stride : 0;
        multiply_rows_of_block(g, blocking, {begin, packed_begin}, part, {b, kPanel, g.b.stride, ahead},
                               space);
      }
      if (packed_begin == end) continue;
      pack_b(g.b, {packed_begin, end}, part, g.round_b, space.packed_b, part.size() * kPanel);
      multiply_rows_of_block(g, blocking, {packed_begin, end}, part,
                             {space.packed_b, part.size() * kPanel, kPanel}, space);
    }
  }
}

void multiply_by_columns(const Gemm& g, const GemmBlocking& blocking, std::span<std::byte> workspace,
                         ThreadPool& threads) {
  const int64_t granularity = columns_of_blocks(g.b);
  threads.run([&](int thread) {
    const Range columns = split_range(g.n, threads.size(), thread, granularity);
    if (columns.size() <= 0) return;
    multiply_own_columns(g, blocking, columns, {0, g.k}, thread_space(blocking, workspace, thread));
  });
}

// out = alpha * (sum of the threads' parts, in their order) + addend.
void add_parts(const Gemm& g, const GemmBlocking& blocking, std::span<std::byte> workspace, Range rows) {
  HWY_ALIGN float tile[kSliver * kPanel];
  const TileStore to = block_store(g, 0, 0, {0, g.k}, nullptr, 0);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t column = 0; column < g.n; column += kPanel) {
      const int64_t width = std::min(kPanel, g.n - column);
      std::fill(tile, tile + kPanel, 0.0f);
      for (int part = 0; part < blocking.depth_parts; ++part) {
        const float* sums = thread_space(blocking, workspace, part).partial + row * g.n + column;
        for (int64_t j = 0; j < width; ++j) tile[j] += sums[j];
      }
      store_tile(tile, kPanel, row, column, 1, width, to);
    }
  }
}

void multiply_by_depth(const Gemm& g, const GemmBlocking& blocking, std::span<std::byte> workspace,
                       ThreadPool& threads) {
  threads.run([&](int thread) {
    const ThreadSpace space = thread_space(blocking, workspace, thread);
    const Range depth = split_range(g.k, blocking.depth_parts, thread, 256);
    std::fill(space.partial, space.partial + g.m * g.n, 0.0f);
    if (depth.size() <= 0) return;
    Gemm part = g;
    part.alpha = 1.0f;
    part.addend = {reinterpret_cast<std::byte*>(space.partial), DType::f32, g.n};
    part.out = reinterpret_cast<std::byte*>(space.partial);
    part.out_dtype = DType::f32;
    part.out_stride = g.n;
    multiply_own_columns(part, blocking, {0, g.n}, depth, space);
  });
  threads.parallel_for(g.m, 1, [&](Range rows) { add_parts(g, blocking, workspace, rows); });
}

// k of zero: the sums are empty.
void store_addend(const Gemm& g) {
  HWY_ALIGN float tile[kSliver * kPanel] = {};
  const TileStore to = block_store(g, 0, 0, {0, 0}, nullptr, 0);
  for (int64_t row = 0; row < g.m; ++row) {
    for (int64_t column = 0; column < g.n; column += kPanel) {
      store_tile(tile, kPanel, row, column, 1, std::min(kPanel, g.n - column), to);
    }
  }
}

void multiply(const Gemm& g, const GemmBlocking& blocking, std::span<std::byte> workspace,
              ThreadPool& threads) {
  if (g.k == 0) return store_addend(g);
  switch (blocking.split) {
    case GemmSplit::rows:
      return multiply_by_rows(g, blocking, workspace, threads);
    case GemmSplit::columns:
      return multiply_by_columns(g, blocking, workspace, threads);
    case GemmSplit::depth:
      return multiply_by_depth(g, blocking, workspace, threads);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {
HWY_EXPORT(multiply);
}  // namespace

void gemm(const Gemm& g, std::span<std::byte> workspace, ThreadPool& threads) {
  if (g.m == 0 || g.n == 0) return;
  const GemmSizes sizes{g.m, g.n, g.k, g.b.dtype, g.b.transposed, g.out_dtype, g.tail.k, g.unit};
  const GemmBlocking blocking = gemm_blocking(sizes, threads.size());
  CHECK(static_cast<int64_t>(workspace.size()) >= blocking.bytes(threads.size()));
  CHECK(g.tail.k == 0 || (g.k > 0 && g.alpha == 1.0f));
  if (g.unit != GemmUnit::f32) return gemm_bf16(g, blocking, workspace, threads);
  HWY_DYNAMIC_DISPATCH(multiply)(g, blocking, workspace, threads);
}

}  // namespace tenon
#endif
