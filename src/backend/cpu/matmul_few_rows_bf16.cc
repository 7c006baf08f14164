// matmul of up to kMostFewRows rows by a bf16 weight stored row by output (trans_b), on the tile
// registers of AMX. The weight is read once, in order, as it lies; an output is the same whatever other rows
// there are.
#include "backend/cpu/few_rows_bf16.h"
#include "backend/cpu/gemm_bf16_tile.h"
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/matmul_few_rows_bf16.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/few_rows-inl.h"
#include "backend/cpu/gemm_pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

static_assert(kColumnBlock % kFewRowsTile == 0 && kMostFewRows == kFewRowsTile);

struct FewRowsOfBf16 {
  const uint16_t *a, *b;  // [m, k], [n, k]
  int64_t m, n, k;
};

FewRowsOfBf16 operands(const KernelCall& kernel) {
  const Shape &a = kernel.inputs[0].type.shape, &b = kernel.inputs[1].type.shape;
  return {input_as<uint16_t>(kernel, 0), input_as<uint16_t>(kernel, 1), a[0], b[0], a[1]};
}

// a as pairs side by side (few_rows_bf16.h), zeros for the rows that it lacks.
void pack_activations(const FewRowsOfBf16& call, uint32_t* panel) {
  HWY_ALIGN float words[kFewRowsTile * kChunk / 2];
  const float* rows[kFewRowsTile];
  for (int64_t p = 0; p < call.k; p += kChunk) {
    const int64_t count = std::min(kChunk, call.k - p);
    for (int64_t i = 0; i < call.m; ++i) {
      float* row = words + i * kChunk / 2;
      std::memcpy(row, call.a + i * call.k + p, static_cast<size_t>(count) * 2);
      rows[i] = row;
    }
    transpose_rows(rows, call.m, kFewRowsTile, count / 2,
                   reinterpret_cast<float*>(panel + p / 2 * kFewRowsTile), kFewRowsTile);
  }
}

// Columns [first, first + count) in whole tiles; those up to `end` are read next. The last tile of the matrix
// begins early enough to lie inside of it.
void multiply_in_tiles(const FewRowsOfBf16& call, const uint32_t* panel, int64_t first, int64_t count,
                       int64_t end, ColumnSums& sums) {
  HWY_ALIGN float turned[kFewRowsTile * kFewRowsTile];
  for (int64_t c = 0; c < count; c += kFewRowsTile) {
    const int64_t begin = std::min(first + c, call.n - kFewRowsTile);
    const int64_t after = begin + kFewRowsTile;
    multiply_few_rows_tile({call.b + begin * call.k, call.k, end - after}, panel, call.k, turned);
    for (int64_t column = first + c; column < std::min(after, first + count); ++column) {
      const float* from = turned + (column - begin) * kFewRowsTile;
      for (int64_t i = 0; i < call.m; ++i) sums[i][column - first] = from[i];
    }
  }
}

void multiply_few_rows_in_tiles(const KernelCall& kernel) {
  const FewRowsOfBf16 call = operands(kernel);
  uint32_t* panel = reinterpret_cast<uint32_t*>(kernel.workspace.data());
  pack_activations(call, panel);
  kernel.threads->parallel_for(call.n, kFewRowsTile, [&](Range range) {
    begin_bf16_tiles();
    each_block_of(kernel, range, [&](int64_t first, int64_t count, ColumnSums& sums) {
      multiply_in_tiles(call, panel, first, count, range.end, sums);
    });
    end_bf16_tiles();
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(multiply_few_rows_in_tiles);

bool serves(const OpSite& site, const DeviceFacts& facts) {
  const Type &a = site.inputs[0], &b = site.inputs[1], &out = site.outputs[0];
  if (!has_gemm_unit(GemmUnit::bf16_tiles, a.dtype, facts) || b.dtype != DType::bf16) return false;
  if (site.attrs.flag("trans_a") || !site.attrs.flag("trans_b") || !is_vector_dtype(out.dtype)) return false;
  if (site.inputs.size() == 3 && !is_vector_dtype(site.inputs[2].dtype)) return false;
  const int64_t m = out.shape[0], n = out.shape[1], k = a.shape[1];
  return m >= 1 && m <= kMostFewRows && n >= kFewRowsTile && k > 0 && k % kFewRowsTileDepth == 0;
}

}  // namespace

const KernelDef& matmul_few_rows_bf16_tiles_kernel() {
  static constexpr KernelDef def{
      .op = "matmul",
      .name = "matmul_few_rows_bf16_tiles",
      .serves = serves,
      .workspace_bytes = [](const OpSite& site,
                            const DeviceFacts&) { return site.inputs[0].shape[1] * kFewRowsTile * 2; },
      .cost = [](const OpSite&, const DeviceFacts&) { return 0.25; },
      .run =
          [](const KernelCall& call) {
            HWY_DYNAMIC_DISPATCH(multiply_few_rows_in_tiles)
            (call);
          }};
  return def;
}

}  // namespace tenon
#endif
