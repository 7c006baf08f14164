// matmul for every size and every dtype of b, through the packed product (gemm.h), and the same on units that
// multiply bf16.
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {
namespace {

constexpr int64_t kFewestRowsOfBf16 = 9;

int64_t depth(const Attrs& attrs, const Shape& a) {
  return a[attrs.flag("trans_a") ? 0 : 1];
}

// Few rows leave most of a tile's time to packing b.
bool fills_bf16_unit(const OpSite& site) {
  const Shape &a = site.inputs[0].shape, &out = site.outputs[0].shape;
  return out[0] >= kFewestRowsOfBf16 && depth(site.attrs, a) > 0;
}

template <GemmUnit kUnit>
bool serves(const OpSite& site, const DeviceFacts& facts) {
  if (!has_gemm_unit(kUnit, site.inputs[0].dtype, facts)) return false;
  if (kUnit != GemmUnit::f32 && !fills_bf16_unit(site)) return false;
  if (!is_vector_dtype(site.inputs[0].dtype) || !is_vector_dtype(site.outputs[0].dtype)) return false;
  return site.inputs.size() < 3 || is_vector_dtype(site.inputs[2].dtype);
}

template <GemmUnit kUnit>
int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const Type& out = site.outputs[0];
  return gemm_workspace_bytes({.m = out.shape[0],
                               .n = out.shape[1],
                               .k = depth(site.attrs, site.inputs[0].shape),
                               .b_dtype = site.inputs[1].dtype,
                               .b_transposed = site.attrs.flag("trans_b"),
                               .out_dtype = out.dtype,
                               .unit = kUnit},
                              facts.threads);
}

template <GemmUnit kUnit>
void run(const KernelCall& call) {
  const TensorView &a = call.inputs[0], &b = call.inputs[1], &out = call.outputs[0];
  Gemm g;
  g.unit = kUnit;
  set_gemm_out(g, out);
  g.k = depth(*call.attrs, a.type.shape);
  g.a = gemm_matrix(a, call.attrs->flag("trans_a"));
  g.b = gemm_matrix(b, call.attrs->flag("trans_b"));
  g.round_b = rounds_second(a.type.dtype, b.type.dtype);
  g.alpha = static_cast<float>(call.attrs->real("alpha"));
  if (call.inputs.size() == 3) g.addend = gemm_addend(call.inputs[2]);
  gemm(g, call.workspace, *call.threads);
}

}  // namespace

TENON_UNIT_KERNELS("matmul", matmul_packed, matmul_packed_bf16_pairs, matmul_packed_bf16_tiles, 0.0)

}  // namespace tenon
