// a · b over many rows with few output columns, as LoRA's down projections and the gradients of their outputs
// are. The rows of a come from memory: they are read where they lie and asked for ahead, in order. b is
// packed once. Threads share out rows, each of which is summed by itself: any number of threads gives the
// same bits.
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/matmul_narrow_output.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "backend/cpu/gemm_pack-inl.h"
#include "backend/cpu/simd-inl.h"
#include "base/checked_math.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// Tiles of rows by vectors of output columns, in the registers of the target: pairs of vectors, and a single
// one where their number is odd.
constexpr int64_t kPairRows = kSliver, kSingleRows = 12;
constexpr int64_t kLane = static_cast<int64_t>(kLanes);
constexpr int64_t kLine = 16;            // floats of a cache line
constexpr int64_t kMostRows = 48;        // of a block; a multiple of every tile's
constexpr int64_t kBlockFloats = 32768;  // of a, aimed at: two blocks stay in the second cache
constexpr int64_t kMostPart = 320;       // depth whose part of a packed pair stays in the first cache
static_assert(kMostRows % kPairRows == 0 && kMostRows % kSingleRows == 0);

struct NarrowOutput {
  int64_t rows, depth, columns;
  const float* a;         // [rows, depth]
  const float* packed_b;  // panels of pairs of vectors, the single one last
  float alpha;
  float* out;  // [rows, columns]
};

// A part of the depth, the same for all rows.
struct DepthPart {
  Range depth;
  bool first, last;
};

// Output columns that one tile takes.
struct OutputPanel {
  const float* b;  // of the part's first row on
  int64_t column, width;
};

// What is asked for while a block is multiplied: the rows after it.
struct Asking {
  const float *next, *end;
};

// The finished sums of `rows` rows and one panel.
template <int64_t kVectors>
HWY_INLINE void store_output(const NarrowOutput& call, const OutputPanel& panel, const float* sums,
                             float* out, int64_t rows) {
  const VF alpha = hn::Set(DF(), call.alpha);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < panel.width; j += kLane) {
      const VF sum = hn::Mul(load(sums + i * kVectors * kLane + j), alpha);
      float* to = out + i * call.columns + panel.column + j;
      if (panel.width - j >= kLane) {
        store(sum, to);
      } else {
        store_part(sum, to, static_cast<size_t>(panel.width - j));
      }
    }
  }
}

// kRows rows by one panel over a part of the depth; the sums of parts before the last lie in `sums`.
template <int64_t kRows, int64_t kVectors>
HWY_INLINE void multiply_row_tile(const NarrowOutput& call, const float* HWY_RESTRICT a, int64_t stride,
                                  const DepthPart& part, const OutputPanel& panel, Asking& asking,
                                  float* sums, float* out, int64_t valid_rows) {
  VF tile[kRows][kVectors];
#pragma GCC unroll 12
  for (int64_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int64_t j = 0; j < kVectors; ++j) tile[i][j] = hn::Zero(DF());
  }
  const float* HWY_RESTRICT b = panel.b;
  const auto add_step = [&](int64_t p) HWY_ATTR {
    VF row[kVectors];
#pragma GCC unroll 2
    for (int64_t j = 0; j < kVectors; ++j) row[j] = load(b + j * kLane);
#pragma GCC unroll 12
    for (int64_t i = 0; i < kRows; ++i) {
      const VF value = hn::Set(DF(), a[i * stride + p]);
#pragma GCC unroll 2
      for (int64_t j = 0; j < kVectors; ++j) tile[i][j] = hn::MulAdd(value, row[j], tile[i][j]);
    }
    b += kVectors * kLane;
  };
  constexpr int64_t kLinesOfTwoSteps = ceil_div(2 * kRows, kLine);
  const int64_t depth = part.depth.size();
  const float* line = asking.next;
  int64_t p = 0;
  for (; p + 2 <= depth; p += 2) {
    for (int64_t i = 0; i < kLinesOfTwoSteps; ++i) {
      __builtin_prefetch(line, 0, 2);
      line = std::min(line + kLine, asking.end);
    }
    add_step(p);
    add_step(p + 1);
  }
  if (p < depth) add_step(p);
  asking.next = line;
#pragma GCC unroll 12
  for (int64_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int64_t j = 0; j < kVectors; ++j) {
      float* sum = sums + (i * kVectors + j) * kLane;
      store(part.first ? tile[i][j] : hn::Add(load(sum), tile[i][j]), sum);
    }
  }
  if (part.last) store_output<kVectors>(call, panel, sums, out, valid_rows);
}

// All rows of a block by one panel. Rows that do not fill a tile are copied beside rows of zeros.
template <int64_t kRows, int64_t kVectors>
void multiply_rows_by_panel(const NarrowOutput& call, Range rows, const DepthPart& part,
                            const OutputPanel& panel, Asking& asking, float* sums) {
  for (int64_t row = rows.begin; row < rows.end; row += kRows) {
    const float* a = call.a + row * call.depth + part.depth.begin;
    float* tile_sums = sums + (row - rows.begin) * kVectors * kLane;
    float* out = call.out + row * call.columns;
    if (const int64_t count = rows.end - row; count >= kRows) {
      multiply_row_tile<kRows, kVectors>(call, a, call.depth, part, panel, asking, tile_sums, out, kRows);
    } else {
      HWY_ALIGN float padded[kRows * kMostPart] = {};
      for (int64_t i = 0; i < count; ++i) {
        std::copy_n(a + i * call.depth, part.depth.size(), padded + i * kMostPart);
      }
      multiply_row_tile<kRows, kVectors>(call, padded, kMostPart, part, panel, asking, tile_sums, out, count);
    }
  }
}

// A block of rows, while the `next` ones are asked for.
void multiply_row_block(const NarrowOutput& call, Range rows, Range next) {
  HWY_ALIGN float sums[kMostRows * 2 * kLane];
  const int64_t vectors = ceil_div(call.columns, kLane), parts = ceil_div(call.depth, kMostPart);
  Asking asking{call.a + next.begin * call.depth, call.a + next.end * call.depth};
  for (int64_t vector = 0; vector < vectors; vector += 2) {
    const bool pair = vector + 2 <= vectors;
    const int64_t column = vector * kLane, padded = (pair ? 2 : 1) * kLane;
    const int64_t width = std::min(padded, call.columns - column);
    for (int64_t i = 0; i < parts; ++i) {
      const Range depth = split_range(call.depth, static_cast<int>(parts), static_cast<int>(i));
      const DepthPart part{depth, i == 0, i + 1 == parts};
      const OutputPanel panel{call.packed_b + column * call.depth + depth.begin * padded, column, width};
      if (pair) {
        multiply_rows_by_panel<kPairRows, 2>(call, rows, part, panel, asking, sums);
      } else {
        multiply_rows_by_panel<kSingleRows, 1>(call, rows, part, panel, asking, sums);
      }
    }
  }
}

// Rows `depth` of b's columns `columns`, into a panel of kWidth.
template <int64_t kWidth>
void pack_output_panel(const GemmMatrix& b, Range columns, Range depth, float* out) {
  out += depth.begin * kWidth;
  if (columns.size() <= 0) return;
  if (b.transposed) return pack_rows(b, columns, depth, false, kWidth, out, 0);
  pack_columns<kWidth>(b, columns, depth, false, out, 0);
}

// All columns of b as panels: pairs of vectors, then the single one.
void pack_output_panels(const GemmMatrix& b, int64_t columns, int64_t whole_depth, Range depth, float* out) {
  const int64_t paired = ceil_div(columns, kLane) / 2 * 2 * kLane;
  for (int64_t column = 0; column < paired; column += 2 * kLane) {
    pack_output_panel<2 * kLane>(b, {column, std::min(column + 2 * kLane, columns)}, depth,
                                 out + column * whole_depth);
  }
  pack_output_panel<kLane>(b, {paired, columns}, depth, out + paired * whole_depth);
}

void multiply_narrow_output(const KernelCall& kernel) {
  const TensorView &a = kernel.inputs[0], &out = kernel.outputs[0];
  const GemmMatrix b = gemm_matrix(kernel.inputs[1], kernel.attrs->flag("trans_b"));
  float* packed = reinterpret_cast<float*>(kernel.workspace.data());
  const NarrowOutput call{out.type.shape[0],
                          a.type.shape[1],
                          out.type.shape[1],
                          reinterpret_cast<const float*>(a.data),
                          packed,
                          static_cast<float>(kernel.attrs->real("alpha")),
                          output_as<float>(kernel, 0)};
  kernel.threads->parallel_for(call.depth, kLine, [&](Range depth) {
    pack_output_panels(b, call.columns, call.depth, depth, packed);
  });
  const int64_t block =
      std::clamp<int64_t>(kBlockFloats / call.depth / kSingleRows * kSingleRows, kSingleRows, kMostRows);
  kernel.threads->parallel_for(call.rows, kSingleRows, [&](Range own) {
    for (int64_t row = own.begin; row < own.end; row += block) {
      const int64_t end = std::min(row + block, own.end), next_end = std::min(end + block, own.end);
      multiply_row_block(call, {row, end}, {end, next_end});
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(multiply_narrow_output);

constexpr int64_t kMostColumns = 64;

bool serves(const OpSite& site, const DeviceFacts& facts) {
  const Type &a = site.inputs[0], &out = site.outputs[0];
  return facts.kind == DeviceKind::cpu && site.inputs.size() == 2 && !site.attrs.flag("trans_a") &&
         a.dtype == DType::f32 && is_vector_dtype(site.inputs[1].dtype) && out.dtype == DType::f32 &&
         a.shape[1] > 0 && out.shape[0] > kMostFewRows && out.shape[1] > 0 && out.shape[1] <= kMostColumns;
}

// b, its columns padded to whole vectors of any target.
int64_t workspace_bytes(const OpSite& site, const DeviceFacts&) {
  return round_up(site.outputs[0].shape[1], kMostPanelColumns / 2) * site.inputs[0].shape[1] * 4;
}

}  // namespace

const KernelDef& matmul_narrow_output_kernel() {
  static constexpr KernelDef def{.op = "matmul",
                                 .name = "matmul_narrow_output",
                                 .serves = serves,
                                 .workspace_bytes = workspace_bytes,
                                 .cost = [](const OpSite&, const DeviceFacts&) { return 1.75; },
                                 .run =
                                     [](const KernelCall& call) {
                                       HWY_DYNAMIC_DISPATCH(multiply_narrow_output)
                                       (call);
                                     }};
  return def;
}

}  // namespace tenon
#endif
