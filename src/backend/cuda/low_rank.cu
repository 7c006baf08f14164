// matmul_low_rank: two products of the library, the low-rank one first and the other added to it. Where
// dtypes do not allow that, two of the plain kernel, the first kept in f32.
#include "backend/cuda/convert.h"
#include "backend/cuda/elementwise.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/plain_matmul.h"

namespace tenon::cuda {
namespace {

// The types of a site or call.
struct Types {
  const Type &a, &b, &low, &up, &out;
  const Type* addend;  // null: none

  int64_t m() const { return out.shape[0]; }
  int64_t n() const { return out.shape[1]; }
  // A row in f32 is added to a bf16 output before the rounding: the sums are in f32 until then.
  bool wide() const {
    return addend != nullptr && addend->shape.rank() == 1 && addend->dtype == DType::f32 &&
           out.dtype == DType::bf16;
  }
  DType sum() const { return wide() ? DType::f32 : out.dtype; }
};

Types types_of(const OpSite& site) {
  return {site.inputs[0], site.inputs[1],  site.inputs[2],
          site.inputs[3], site.outputs[0], site.inputs.size() == 5 ? &site.inputs[4] : nullptr};
}
Types types_of(const KernelCall& call) {
  return {call.inputs[0].type,  call.inputs[1].type,
          call.inputs[2].type,  call.inputs[3].type,
          call.outputs[0].type, call.inputs.size() == 5 ? &call.inputs[4].type : nullptr};
}

// Where operands in another dtype, and sums in f32, lie in the workspace.
struct Workspace {
  int64_t b = 0, up = 0, row = 0, sum = 0, bytes = 0;
};

Workspace workspace_of(const Types& t) {
  Workspace w;
  const auto place = [&](bool needed, DType dtype, const Shape& shape) {
    const int64_t at = w.bytes;
    if (needed) w.bytes += round_up(Type{dtype, shape}.bytes(), kArenaAlignment);
    return at;
  };
  w.bytes = round_up(gemm_workspace_bytes(t.m(), t.n()), kArenaAlignment);
  w.b = place(t.b.dtype != t.a.dtype, t.a.dtype, t.b.shape);
  w.up = place(t.up.dtype != t.low.dtype, t.low.dtype, t.up.shape);
  const bool converts_row = t.addend != nullptr && !t.wide() && t.addend->dtype != t.out.dtype;
  w.row = place(converts_row, t.out.dtype, Shape{t.n()});
  w.sum = place(t.wide(), DType::f32, t.out.shape);
  return w;
}

bool serves_operand(DType dtype) {
  return is_plain(dtype) || is_block_quantised(dtype);
}

bool serves_library(const OpSite& site, const DeviceFacts& facts) {
  if (facts.kind != DeviceKind::cuda) return false;
  const Types t = types_of(site);
  if (t.a.dtype != DType::f32 && t.a.dtype != DType::bf16) return false;
  if (t.low.dtype != t.a.dtype || (t.out.dtype != DType::f32 && t.out.dtype != t.a.dtype)) return false;
  if (!serves_operand(t.b.dtype) || !serves_operand(t.up.dtype)) return false;
  if (t.m() == 0 || t.n() == 0 || t.a.shape[1] == 0 || t.low.shape[1] == 0) return false;
  if (t.addend == nullptr || t.addend->dtype == t.out.dtype || t.wide()) return true;
  return t.addend->shape.rank() == 1 && t.out.dtype == DType::f32 && is_plain(t.addend->dtype);
}

struct State : KernelState {
  State(Gemm low_rank, Gemm base) : branch(std::move(low_rank)), rest(std::move(base)) {}
  Gemm branch, rest;
};

Result<std::unique_ptr<KernelState>> prepare(const KernelCall& call) {
  const Types t = types_of(call);
  GemmProblem p{.m = t.m(),
                .n = t.n(),
                .k = t.low.shape[1],
                .trans_b = call.attrs->flag("trans_b"),
                .operand = t.a.dtype,
                .out = t.sum()};
  if (t.addend != nullptr && !t.wide()) {
    p.added = t.addend->shape.rank() == 1 ? GemmProblem::Added::row : GemmProblem::Added::matrix;
  }
  ASSIGN_OR_RETURN(Gemm branch, Gemm::prepare(p));
  p.k = t.a.shape[1];
  p.added = GemmProblem::Added::matrix;
  ASSIGN_OR_RETURN(Gemm rest, Gemm::prepare(p));
  return std::unique_ptr<KernelState>(std::make_unique<State>(std::move(branch), std::move(rest)));
}

void run_library(const KernelCall& call) {
  const Types t = types_of(call);
  const Workspace w = workspace_of(t);
  std::byte* workspace = call.workspace.data();
  const auto as = [&](size_t index, DType dtype, int64_t offset) -> const std::byte* {
    const TensorView& view = call.inputs[index];
    if (view.type.dtype == dtype) return view.data;
    launch_convert(call, tensor_of(view), {workspace + offset, dtype}, view.type.elements());
    return workspace + offset;
  };
  const std::byte* b = as(1, t.a.dtype, w.b);
  const std::byte* up = as(3, t.low.dtype, w.up);
  const std::byte* added = t.addend != nullptr && !t.wide() ? as(4, t.out.dtype, w.row) : nullptr;
  std::byte* out = t.wide() ? workspace + w.sum : call.outputs[0].data;
  const auto* state = static_cast<const State*>(call.state);
  const auto alpha = static_cast<float>(call.attrs->real("alpha"));
  state->branch.run(call, call.inputs[2].data, up, added, out, alpha, workspace);
  state->rest.run(call, call.inputs[0].data, b, out, out, 1.0f, workspace);
  if (t.wide())
    launch_add_row(call, {out, DType::f32}, input_as<float>(call, 4), output(call, 0), t.m(), t.n());
}

void run_plain(const KernelCall& call) {
  const Types t = types_of(call);
  const Tensor sum{call.workspace.data(), DType::f32};
  const bool trans_b = call.attrs->flag("trans_b");
  PlainProduct p{.a = input(call, 2),
                 .b = input(call, 3),
                 .out = sum,
                 .m = t.m(),
                 .n = t.n(),
                 .k = t.low.shape[1],
                 .trans_b = trans_b,
                 .alpha = static_cast<float>(call.attrs->real("alpha"))};
  if (t.addend != nullptr) {
    p.addend = input(call, 4);
    p.addend_is_row = t.addend->shape.rank() == 1;
  }
  launch_plain_matmul(call, p);
  launch_plain_matmul(call, {.a = input(call, 0),
                             .b = input(call, 1),
                             .out = output(call, 0),
                             .m = t.m(),
                             .n = t.n(),
                             .k = t.a.shape[1],
                             .trans_b = trans_b,
                             .addend = sum});
}

bool serves_plain_product(const OpSite& site, const DeviceFacts& facts) {
  const Types t = types_of(site);
  return facts.kind == DeviceKind::cuda && is_plain(t.a.dtype) && is_plain(t.low.dtype) &&
         is_plain(t.out.dtype) && serves_operand(t.b.dtype) && serves_operand(t.up.dtype) &&
         (t.addend == nullptr || is_plain(t.addend->dtype));
}

constexpr KernelDef kKernels[] = {
    {.op = "matmul_low_rank",
     .name = "matmul_low_rank_cublaslt",
     .serves = serves_library,
     .workspace_bytes = [](const OpSite& site,
                           const DeviceFacts&) { return workspace_of(types_of(site)).bytes; },
     .in_place = false,
     .prepare = prepare,
     .run = run_library},
    {.op = "matmul_low_rank",
     .name = "matmul_low_rank_plain",
     .serves = serves_plain_product,
     .workspace_bytes =
         [](const OpSite& site, const DeviceFacts&) {
           return Type{DType::f32, site.outputs[0].shape}.bytes();
         },
     .cost = [](const OpSite&, const DeviceFacts&) { return 100.0; },
     .run = run_plain},
};

}  // namespace

std::span<const KernelDef> low_rank_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
