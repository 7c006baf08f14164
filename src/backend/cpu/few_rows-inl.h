// What the products of few rows share: their sums meet the addend and are rounded, a block of columns at a
// time. Included once per Highway target.
#if defined(TENON_BACKEND_CPU_FEW_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_FEW_ROWS_INL_H_
#undef TENON_BACKEND_CPU_FEW_ROWS_INL_H_
#else
#define TENON_BACKEND_CPU_FEW_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "backend/cpu/convert-inl.h"
#include "backend/cpu/gemm_blocking.h"
#include "backend/cpu/simd-inl.h"
#include "base/threads.h"
#include "device/kernel.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

constexpr int64_t kColumnBlock = 48;  // whole tiles and vectors of every kernel

// Sums of all rows of a by up to kColumnBlock rows of b.
using ColumnSums = float[kMostFewRows][kColumnBlock];

// out[row, first + c] = alpha * sums[row][c] (+ addend) for `count` columns.
inline void store_columns(const KernelCall& kernel, int64_t first, int64_t count, ColumnSums& sums) {
  const TensorView& out = kernel.outputs[0];
  const int64_t m = out.type.shape[0], n = out.type.shape[1];
  const VF alpha = hn::Set(DF(), static_cast<float>(kernel.attrs->real("alpha")));
  HWY_ALIGN float old[kColumnBlock] = {};
  for (int64_t row = 0; row < m; ++row) {
    if (kernel.inputs.size() == 3) {
      const TensorView& addend = kernel.inputs[2];
      const int64_t begin = addend.type.shape.rank() == 2 ? row * n + first : first;
      widen_row(addend.type.dtype, addend.data, begin, count, old);
    }
    float* values = sums[row];
    for (int64_t c = 0; c < count; c += static_cast<int64_t>(kLanes)) {
      store(hn::MulAdd(load(values + c), alpha, load(old + c)), values + c);
    }
    round_row(out.type.dtype, values, count, out.data + *dtype_bytes(out.type.dtype, row * n + first));
  }
}

// Asks for the weights that come after kBytes of them at `p`: rows are too short for the machine to run
// ahead.
template <int64_t kBytes>
HWY_INLINE void prefetch_ahead(const uint8_t* p) {
  constexpr int64_t kAhead = 2048, kLine = 64;
#pragma GCC unroll 4
  for (int64_t i = 0; i < kBytes; i += kLine) hwy::Prefetch(p + kAhead + i);
}

// multiply(first, count, sums) fills the sums of each block of the columns in `range`.
template <typename Multiply>
HWY_INLINE void each_block_of(const KernelCall& kernel, Range range, Multiply multiply) {
  ColumnSums sums = {};
  for (int64_t first = range.begin; first < range.end; first += kColumnBlock) {
    const int64_t count = std::min(kColumnBlock, range.end - first);
    multiply(first, count, sums);
    store_columns(kernel, first, count, sums);
  }
}

// The whole product, columns shared by the threads.
template <typename Multiply>
HWY_INLINE void each_column_block(const KernelCall& kernel, Multiply multiply) {
  kernel.threads->parallel_for(kernel.outputs[0].type.shape[1], 16,
                               [&](Range range) { each_block_of(kernel, range, multiply); });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
