// matmul: by the library where dtypes allow (b first rounded to a's dtype, blocks decoded), else by the plain
// kernel.
#include "backend/cuda/convert.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"
#include "backend/cuda/plain_matmul.h"

namespace tenon::cuda {
namespace {

struct Sizes {
  int64_t m, n, k;
};
Sizes sizes_of(const Attrs& attrs, const Shape& a, const Shape& out) {
  return {out[0], out[1], a[attrs.flag("trans_a") ? 0 : 1]};
}

void run_plain(const KernelCall& call) {
  const Shape& out = call.outputs[0].type.shape;
  const auto [m, n, k] = sizes_of(*call.attrs, call.inputs[0].type.shape, out);
  PlainProduct p{.a = input(call, 0),
                 .b = input(call, 1),
                 .out = output(call, 0),
                 .m = m,
                 .n = n,
                 .k = k,
                 .trans_a = call.attrs->flag("trans_a"),
                 .trans_b = call.attrs->flag("trans_b"),
                 .alpha = static_cast<float>(call.attrs->real("alpha"))};
  if (call.inputs.size() == 3) {
    p.addend = input(call, 2);
    p.addend_is_row = call.inputs[2].type.shape.rank() == 1;
  }
  launch_plain_matmul(call, p);
}

// A row in f32 is added to a bf16 output before the rounding: the library's sums go to the workspace, in f32.
bool adds_wide_row(const Type* addend, const Type& out) {
  return addend != nullptr && addend->shape.rank() == 1 && addend->dtype == DType::f32 &&
         out.dtype == DType::bf16;
}

// Where the operands that need another dtype lie in the workspace.
struct Workspace {
  int64_t b_offset = 0, row_offset = 0, sum_offset = 0, bytes = 0;
};

// Works on a site and on a call, whose views have the same types.
Workspace workspace_of(const Type& a, const Type& b, const Type* addend, const Type& out) {
  Workspace w;
  const auto place = [&](bool needed, const Type& type) {
    const int64_t at = w.bytes;
    if (needed) w.bytes += round_up(type.bytes(), kArenaAlignment);
    return at;
  };
  w.bytes = round_up(gemm_workspace_bytes(out.shape[0], out.shape[1]), kArenaAlignment);
  w.b_offset = place(b.dtype != a.dtype, {a.dtype, b.shape});
  const bool wide = adds_wide_row(addend, out);
  const bool converts_row = addend != nullptr && addend->dtype != out.dtype && !wide;
  w.row_offset = place(converts_row, converts_row ? Type{out.dtype, addend->shape} : out);
  w.sum_offset = place(wide, {DType::f32, out.shape});
  return w;
}

const Type* addend_of(const KernelCall& call) {
  return call.inputs.size() == 3 ? &call.inputs[2].type : nullptr;
}

int64_t workspace_bytes(const OpSite& site, const DeviceFacts&) {
  const Type* addend = site.inputs.size() == 3 ? &site.inputs[2] : nullptr;
  return workspace_of(site.inputs[0], site.inputs[1], addend, site.outputs[0]).bytes;
}

// An addend must be of the output's dtype; a row may also be widened to it, or be wider.
bool serves_addend(const Type& addend, const Type& out) {
  if (addend.dtype == out.dtype || adds_wide_row(&addend, out)) return true;
  return addend.shape.rank() == 1 && out.dtype == DType::f32 && is_plain(addend.dtype);
}

bool serves_library(const OpSite& site, const DeviceFacts& facts) {
  if (facts.kind != DeviceKind::cuda) return false;
  const Type &a = site.inputs[0], &b = site.inputs[1], &out = site.outputs[0];
  if (a.dtype != DType::f32 && a.dtype != DType::bf16) return false;
  if (out.dtype != DType::f32 && out.dtype != a.dtype) return false;
  if (!is_plain(b.dtype) && !is_block_quantised(b.dtype)) return false;
  const auto [m, n, k] = sizes_of(site.attrs, a.shape, out.shape);
  if (m == 0 || n == 0 || k == 0) return false;
  return site.inputs.size() == 2 || serves_addend(site.inputs[2], out);
}

struct State : KernelState {
  explicit State(Gemm product) : gemm(std::move(product)) {}
  Gemm gemm;
};

Result<std::unique_ptr<KernelState>> prepare(const KernelCall& call) {
  const Type &a = call.inputs[0].type, &out = call.outputs[0].type;
  const Type* addend = addend_of(call);
  const auto [m, n, k] = sizes_of(*call.attrs, a.shape, out.shape);
  GemmProblem problem{.m = m,
                      .n = n,
                      .k = k,
                      .trans_a = call.attrs->flag("trans_a"),
                      .trans_b = call.attrs->flag("trans_b"),
                      .operand = a.dtype,
                      .out = out.dtype};
  if (adds_wide_row(addend, out)) {
    problem.out = DType::f32;
  } else if (addend != nullptr) {
    problem.added = addend->shape.rank() == 1 ? GemmProblem::Added::row : GemmProblem::Added::matrix;
  }
  ASSIGN_OR_RETURN(Gemm gemm, Gemm::prepare(problem));
  return std::unique_ptr<KernelState>(std::make_unique<State>(std::move(gemm)));
}

void run_library(const KernelCall& call) {
  const Type& out = call.outputs[0].type;
  const Type* addend = addend_of(call);
  const DType a = call.inputs[0].type.dtype;
  const Workspace w = workspace_of(call.inputs[0].type, call.inputs[1].type, addend, out);
  const bool wide = adds_wide_row(addend, out);
  std::byte* workspace = call.workspace.data();
  const auto as = [&](const TensorView& view, DType dtype, int64_t offset) -> const std::byte* {
    if (view.type.dtype == dtype) return view.data;
    launch_convert(call, tensor_of(view), {workspace + offset, dtype}, view.type.elements());
    return workspace + offset;
  };
  const std::byte* b = as(call.inputs[1], a, w.b_offset);
  const std::byte* added = addend != nullptr && !wide ? as(call.inputs[2], out.dtype, w.row_offset) : nullptr;
  std::byte* product = wide ? workspace + w.sum_offset : call.outputs[0].data;
  static_cast<const State*>(call.state)
      ->gemm.run(call, call.inputs[0].data, b, added, product, static_cast<float>(call.attrs->real("alpha")),
                 workspace);
  if (wide) {
    launch_add_row(call, {product, DType::f32}, input_as<float>(call, 2), output(call, 0), out.shape[0],
                   out.shape[1]);
  }
}

constexpr KernelDef kKernels[] = {
    {.op = "matmul",
     .name = "matmul_cublaslt",
     .serves = serves_library,
     .workspace_bytes = workspace_bytes,
     .in_place = false,  // the library gave other bits where the addend was the output
     .prepare = prepare,
     .run = run_library},
    {.op = "matmul",
     .name = "matmul_plain",
     .serves = serves_number<1>,
     .cost = [](const OpSite&, const DeviceFacts&) { return 100.0; },
     .run = run_plain},
};

}  // namespace

std::span<const KernelDef> matmul_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
