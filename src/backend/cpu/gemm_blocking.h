// How a matrix product is cut: into blocks that fit the caches, and over threads. Pure functions of sizes,
// the same for every instruction set, so that a plan made on one machine holds on another.
#pragma once

#include <cstdint>

#include "backend/cpu/gemm.h"

namespace tenon {

inline constexpr int64_t kMostPanelColumns = 32;  // of any target; panels are padded to whole ones
inline constexpr int64_t kMostSliverRows = 12;
inline constexpr int64_t kMostFewRows = 16;  // that matmul_few_rows takes

enum class GemmSplit : uint8_t {
  rows,     // b is packed once by all threads and shared; each thread has a grid cell of the output
  columns,  // few rows: each thread packs and multiplies its own columns of b
  depth,    // small output, long k: each thread sums a part of k, the parts are added in order
};

struct GemmBlocking {
  GemmSplit split = GemmSplit::rows;
  int64_t mc = 0, nc = 0, kc = 0;  // block of a: mc x kc; block of b: kc x nc (rows: k x nc)
  int row_parts = 1;               // threads along m (rows)
  int column_parts = 1;            // threads along n (rows, columns)
  int depth_parts = 1;             // threads along k (depth)
  // Workspace: shared bytes first, then the parts of each thread.
  int64_t shared_bytes = 0;
  int64_t packed_a_bytes = 0;
  int64_t packed_b_bytes = 0;  // of each thread
  int64_t partial_bytes = 0;   // f32 sums of each thread that cannot lie in the output

  int64_t thread_bytes() const { return packed_a_bytes + packed_b_bytes + partial_bytes; }
  int64_t bytes(int threads) const { return shared_bytes + thread_bytes() * threads; }
};

GemmBlocking gemm_blocking(const GemmSizes& sizes, int threads);

}  // namespace tenon
