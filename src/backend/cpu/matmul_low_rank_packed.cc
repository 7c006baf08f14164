// matmul_low_rank through the packed product: the low-rank part is one more block of its depth.
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {
namespace {

template <GemmUnit kUnit>
bool serves(const OpSite& site, const DeviceFacts& facts) {
  if (!has_gemm_unit(kUnit, site.inputs[0].dtype, facts)) return false;
  const std::span<const Type> in = site.inputs;
  if (!is_vector_dtype(in[0].dtype) || !is_vector_dtype(in[2].dtype)) return false;
  if (!is_vector_dtype(site.outputs[0].dtype) || (in.size() == 5 && !is_vector_dtype(in[4].dtype)))
    return false;
  const int64_t k = in[0].shape[1], rank = in[2].shape[1];
  return k > 0 && rank > 0 && rank <= kMostTailDepth;
}

template <GemmUnit kUnit>
int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const Type& out = site.outputs[0];
  return gemm_workspace_bytes({.m = out.shape[0],
                               .n = out.shape[1],
                               .k = site.inputs[0].shape[1],
                               .b_dtype = site.inputs[1].dtype,
                               .b_transposed = site.attrs.flag("trans_b"),
                               .out_dtype = out.dtype,
                               .tail_k = site.inputs[2].shape[1],
                               .unit = kUnit},
                              facts.threads);
}

template <GemmUnit kUnit>
void run(const KernelCall& call) {
  const TensorView &a = call.inputs[0], &b = call.inputs[1], &low = call.inputs[2], &up = call.inputs[3];
  const TensorView& out = call.outputs[0];
  const bool trans_b = call.attrs->flag("trans_b");
  Gemm g;
  g.unit = kUnit;
  set_gemm_out(g, out);
  g.k = a.type.shape[1];
  g.a = gemm_matrix(a);
  g.b = gemm_matrix(b, trans_b);
  g.round_b = rounds_second(a.type.dtype, b.type.dtype);
  g.tail = {.k = low.type.shape[1],
            .a = gemm_matrix(low),
            .b = gemm_matrix(up, trans_b),
            .round_b = rounds_second(low.type.dtype, up.type.dtype),
            .alpha = static_cast<float>(call.attrs->real("alpha"))};
  if (call.inputs.size() == 5) g.addend = gemm_addend(call.inputs[4]);
  gemm(g, call.workspace, *call.threads);
}

}  // namespace

TENON_UNIT_KERNELS("matmul_low_rank", matmul_low_rank_packed, matmul_low_rank_packed_bf16_pairs,
                   matmul_low_rank_packed_bf16_tiles, 0.0)

}  // namespace tenon
