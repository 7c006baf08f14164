// matmul for every size and every dtype of b, through the packed product (gemm.h).
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {
namespace {

bool serves(const OpSite& site, const DeviceFacts& facts) {
  if (facts.kind != DeviceKind::cpu) return false;
  if (!is_vector_dtype(site.inputs[0].dtype) || !is_vector_dtype(site.outputs[0].dtype)) return false;
  return site.inputs.size() < 3 || is_vector_dtype(site.inputs[2].dtype);
}

int64_t depth(const Attrs& attrs, const Shape& a) {
  return a[attrs.flag("trans_a") ? 0 : 1];
}

int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const Type& out = site.outputs[0];
  return gemm_workspace_bytes({.m = out.shape[0],
                               .n = out.shape[1],
                               .k = depth(site.attrs, site.inputs[0].shape),
                               .b_dtype = site.inputs[1].dtype,
                               .b_transposed = site.attrs.flag("trans_b"),
                               .out_dtype = out.dtype},
                              facts.threads);
}

void run(const KernelCall& call) {
  const TensorView &a = call.inputs[0], &b = call.inputs[1], &out = call.outputs[0];
  Gemm g;
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

const KernelDef& matmul_packed_kernel() {
  static constexpr KernelDef def{.op = "matmul",
                                 .name = "matmul_packed",
                                 .serves = serves,
                                 .workspace_bytes = workspace_bytes,
                                 .cost = [](const OpSite&, const DeviceFacts&) { return 2.0; },
                                 .run = run};
  return def;
}

}  // namespace tenon
