// matmul of up to kMostFewRows rows by a weight stored row by output (trans_b): decoding. Each row of b is
// read once, in order, and multiplied with all rows of a: bound by memory. An output is the same whatever
// other rows and columns there are: each lane has one chain of sums, in the order of k.
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/matmul_few_rows.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/few_rows-inl.h"
#include "backend/cpu/gemm_pack-inl.h"
#include "backend/cpu/simd-inl.h"
#include "base/checked_math.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// A tile of sums fills the registers of the target with the fewest: 12 of them, three rows of b, one of a.
// With a single row of a it takes eight rows of b to hide the latency of the additions.
constexpr int kTileRows = 4;
constexpr int kTileColumns = 3;
constexpr int kColumnsOfOneRow = 8;

struct FewRows {
  int64_t m, k;
  const float* a;  // [m, k]
  GemmMatrix b;
  bool round_b;
};

// Rows of b are too short for the machine to see where reading goes on: the rows `part`, `distance` elements
// further on, are asked for.
struct Ahead {
  Range part;
  int64_t distance;
};

// sums[i * kColumns + j] += a's row i times b[j] over `count` elements, lane by lane.
template <int kRows, int kColumns, typename T>
HWY_INLINE void add_products(const float* a, int64_t a_stride, const T* const* b, int64_t count,
                             const Ahead& ahead, VF* sums) {
  constexpr int64_t kStep = static_cast<int64_t>(kLanes);
  constexpr int64_t kLine = std::max<int64_t>(64 / static_cast<int64_t>(sizeof(T)), kStep);
  VF tile[kRows][kColumns], weights[kColumns];
#pragma GCC unroll 12
  for (int i = 0; i < kRows * kColumns; ++i) tile[i / kColumns][i % kColumns] = sums[i];
  const auto add_step = [&](int64_t p) HWY_ATTR {
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) weights[j] = load(b[j] + p);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const VF x = load(a + i * a_stride + p);
#pragma GCC unroll 8
      for (int j = 0; j < kColumns; ++j) tile[i][j] = hn::MulAdd(x, weights[j], tile[i][j]);
    }
  };
  int64_t p = 0;
  for (; p + kLine <= count; p += kLine) {
    for (int64_t j = ahead.part.begin; j < ahead.part.end; ++j) hwy::Prefetch(b[j] + p + ahead.distance);
#pragma GCC unroll 4
    for (int64_t q = 0; q < kLine; q += kStep) add_step(p + q);
  }
  for (; p + kStep <= count; p += kStep) add_step(p);
  if (const size_t rest = static_cast<size_t>(count - p); rest > 0) {
    for (int j = 0; j < kColumns; ++j) {
      weights[0] = load_part(b[j] + p, rest);
      for (int i = 0; i < kRows; ++i) {
        tile[i][j] = hn::MulAdd(load_part(a + i * a_stride + p, rest), weights[0], tile[i][j]);
      }
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kRows * kColumns; ++i) sums[i] = tile[i / kColumns][i % kColumns];
}

// The same for all rows of a, tile by tile; each tile asks for its share of the rows of b that come after
// these, so that memory is as busy with the last tile as with the first.
template <int kColumns, typename T>
HWY_INLINE void add_all_rows(const FewRows& call, int64_t begin, const T* const* b, int64_t count, VF* sums) {
  const int64_t tiles = ceil_div(call.m, kTileRows);
  int64_t row = 0;
  const auto add = [&](auto rows) HWY_ATTR {
    const int64_t tile = row / kTileRows;
    const Ahead ahead{{kColumns * tile / tiles, kColumns * (tile + 1) / tiles}, kColumns * call.b.stride};
    add_products<rows(), kColumns>(call.a + row * call.k + begin, call.k, b, count, ahead,
                                   sums + row * kColumns);
    row += rows();
  };
  while (row + kTileRows <= call.m) add(std::integral_constant<int, kTileRows>());
  if (call.m - row == 3) add(std::integral_constant<int, 3>());
  if (call.m - row == 2) add(std::integral_constant<int, 2>());
  if (call.m - row == 1) add(std::integral_constant<int, 1>());
}

template <int kColumns, typename T>
HWY_INLINE void multiply_stored(const FewRows& call, int64_t column, VF* sums) {
  const T* rows[kColumns];
  for (int j = 0; j < kColumns; ++j) {
    rows[j] = reinterpret_cast<const T*>(matrix_row(call.b, column + j));
  }
  add_all_rows<kColumns>(call, 0, rows, call.k, sums);
}

// b is widened, and rounded, chunk by chunk.
template <int kColumns>
void multiply_widened(const FewRows& call, int64_t column, VF* sums) {
  HWY_ALIGN float buffer[kColumns * kChunk];
  const float* rows[kColumns];
  for (int64_t p = 0; p < call.k; p += kChunk) {
    const int64_t count = std::min(kChunk, call.k - p);
    for (int j = 0; j < kColumns; ++j) {
      rows[j] = row_part(call.b, column + j, p, count, call.round_b, buffer + j * kChunk);
    }
    add_all_rows<kColumns>(call, p, rows, count, sums);
  }
}

// All rows of a by the kColumns rows of b from `column` on, into column `to` of the sums.
template <int kColumns>
HWY_INLINE void multiply_columns(const FewRows& call, int64_t column, ColumnSums& out, int64_t to) {
  VF sums[kMostFewRows * kColumns];
  for (int64_t i = 0; i < call.m * kColumns; ++i) sums[i] = hn::Zero(DF());
  if (call.b.dtype == DType::bf16) {
    multiply_stored<kColumns, bf16>(call, column, sums);
  } else if (call.b.dtype == DType::f32 && !call.round_b) {
    multiply_stored<kColumns, float>(call, column, sums);
  } else {
    multiply_widened<kColumns>(call, column, sums);
  }
  for (int64_t i = 0; i < call.m; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) out[i][to + j] = sum_of(sums[i * kColumns + j]);
  }
}

void multiply_few_rows(const KernelCall& kernel) {
  const TensorView &a = kernel.inputs[0], &b = kernel.inputs[1];
  float* a32 = reinterpret_cast<float*>(kernel.workspace.data());
  const FewRows call{a.type.shape[0],
                     a.type.shape[1],
                     a32,
                     {b.data, b.type.dtype, b.type.shape[1]},
                     rounds_second(a.type.dtype, b.type.dtype)};
  widen_row(a.type.dtype, a.data, 0, call.m * call.k, a32);
  each_column_block(kernel, [&](int64_t first, int64_t count, ColumnSums& sums) {
    int64_t c = 0;
    if (call.m == 1) {
      for (; c + kColumnsOfOneRow <= count; c += kColumnsOfOneRow) {
        multiply_columns<kColumnsOfOneRow>(call, first + c, sums, c);
      }
    }
    for (; c + kTileColumns <= count; c += kTileColumns) {
      multiply_columns<kTileColumns>(call, first + c, sums, c);
    }
    for (; c < count; ++c) multiply_columns<1>(call, first + c, sums, c);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(multiply_few_rows);

bool serves(const OpSite& site, const DeviceFacts& facts) {
  const Type& out = site.outputs[0];
  return facts.kind == DeviceKind::cpu && !site.attrs.flag("trans_a") && site.attrs.flag("trans_b") &&
         out.shape[0] <= kMostFewRows && is_vector_dtype(site.inputs[0].dtype) &&
         is_vector_dtype(out.dtype) && (site.inputs.size() < 3 || is_vector_dtype(site.inputs[2].dtype));
}

}  // namespace

const KernelDef& matmul_few_rows_kernel() {
  static constexpr KernelDef def{
      .op = "matmul",
      .name = "matmul_few_rows",
      .serves = serves,
      .workspace_bytes = [](const OpSite& site, const DeviceFacts&) { return site.inputs[0].elements() * 4; },
      .cost = [](const OpSite&, const DeviceFacts&) { return 1.0; },
      .run =
          [](const KernelCall& call) {
            HWY_DYNAMIC_DISPATCH(multiply_few_rows)
            (call);
          }};
  return def;
}

}  // namespace tenon
#endif
