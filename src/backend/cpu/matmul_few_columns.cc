// a^T · b with few columns on units that multiply bf16, as the gradients of LoRA's up matrices are: both read
// down their rows. The packed product wants its many columns in b, so it computes b^T · a and this turns the
// result. Without such a unit matmul_tall_skinny is faster.
#include <span>

#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"
#include "base/checked_math.h"

namespace tenon {
namespace {

constexpr int64_t kMostColumns = 64;
constexpr int64_t kManyRows = 4;  // times the columns

template <GemmUnit kUnit>
bool serves(const OpSite& site, const DeviceFacts& facts) {
  const Type &a = site.inputs[0], &b = site.inputs[1], &out = site.outputs[0];
  if (!has_gemm_unit(kUnit, a.dtype, facts)) return false;
  if (!site.attrs.flag("trans_a") || site.attrs.flag("trans_b") || out.dtype != DType::f32) return false;
  if (!is_vector_dtype(a.dtype) || a.dtype != b.dtype) return false;
  if (site.inputs.size() == 3 && site.inputs[2] != out) return false;
  return a.shape[0] > 0 && out.shape[1] <= kMostColumns && out.shape[0] >= kManyRows * out.shape[1];
}

// The product in the workspace, [columns, rows].
template <GemmUnit kUnit>
Gemm turned_product(const TensorView& a, const TensorView& b, std::byte* out) {
  Gemm g;
  g.unit = kUnit;
  g.m = b.type.shape[1];
  g.n = a.type.shape[1];
  g.k = a.type.shape[0];
  g.a = gemm_matrix(b, true);
  g.b = gemm_matrix(a);
  g.out = out;
  g.out_stride = g.n;
  return g;
}

int64_t turned_bytes(const Type& out) {
  return round_up(out.bytes(), kArenaAlignment);
}

template <GemmUnit kUnit>
int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const Type &a = site.inputs[0], &out = site.outputs[0];
  return turned_bytes(out) + gemm_workspace_bytes({.m = out.shape[1],
                                                   .n = out.shape[0],
                                                   .k = a.shape[0],
                                                   .b_dtype = a.dtype,
                                                   .out_dtype = DType::f32,
                                                   .unit = kUnit},
                                                  facts.threads);
}

template <GemmUnit kUnit>
void run(const KernelCall& call) {
  const TensorView& out = call.outputs[0];
  const int64_t rows = out.type.shape[0], columns = out.type.shape[1];
  const std::span<std::byte> space = call.workspace;
  const auto own = static_cast<size_t>(turned_bytes(out.type));
  gemm(turned_product<kUnit>(call.inputs[0], call.inputs[1], space.data()), space.subspan(own),
       *call.threads);
  const float* turned = reinterpret_cast<const float*>(space.data());
  const float* addend = call.inputs.size() == 3 ? input_as<float>(call, 2) : nullptr;
  float* to = output_as<float>(call, 0);
  const float alpha = static_cast<float>(call.attrs->real("alpha"));
  call.threads->parallel_for(rows, 64, [&](Range range) {
    for (int64_t row = range.begin; row < range.end; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        const float sum = alpha * turned[column * rows + row];
        const int64_t at = row * columns + column;
        to[at] = addend == nullptr ? sum : sum + addend[at];
      }
    }
  });
}

}  // namespace

TENON_UNIT_KERNEL("matmul", matmul_few_columns_bf16_pairs, GemmUnit::bf16_pairs, 0.125)
TENON_UNIT_KERNEL("matmul", matmul_few_columns_bf16_tiles, GemmUnit::bf16_tiles, 0.125)

}  // namespace tenon
