#include "backend/cpu/reference_kernels.h"

#include <array>
#include <string>
#include <utility>

#include "backend/cpu/convert.h"
#include "base/check.h"
#include "base/checked_math.h"
#include "ops/op_list.h"

namespace tenon {
namespace {

constexpr size_t kMostOperands = 2048;  // global_norm takes every gradient of a model

constexpr size_t kOps = 0
#define TENON_OP(name) +1
#include "ops/op_list.inc"
#undef TENON_OP
    ;

int64_t scratch_bytes(const Type& type) {
  return round_up(type.elements() * static_cast<int64_t>(sizeof(double)), kArenaAlignment);
}

int64_t workspace_bytes(const OpSite& site, const DeviceFacts&) {
  int64_t bytes = 0;
  for (const Type& type : site.inputs) bytes += scratch_bytes(type);
  for (const Type& type : site.outputs) bytes += scratch_bytes(type);
  return bytes;
}

bool serves(const OpSite& site, const DeviceFacts& facts) {
  return facts.kind == DeviceKind::cpu && site.inputs.size() + site.outputs.size() <= kMostOperands;
}

double cost(const OpSite&, const DeviceFacts&) {
  return kReferenceCost;
}

// Inputs are all read before an output is written, so any alias is honoured.
void run_reference(const OpDef& op, const KernelCall& call) {
  CHECK(call.inputs.size() + call.outputs.size() <= kMostOperands);
  std::array<ReferenceTensor, kMostOperands> tensors;
  std::byte* scratch = call.workspace.data();
  size_t count = 0;
  const auto add = [&](const Type& type) {
    double* data = reinterpret_cast<double*>(scratch);
    scratch += scratch_bytes(type);
    tensors[count++] = {type, data};
    return data;
  };
  for (const TensorView& input : call.inputs) {
    widen_to_f64(input.type.dtype, input.data, input.type.elements(), add(input.type));
  }
  for (const TensorView& output : call.outputs) add(output.type);
  const std::span<const ReferenceTensor> all(tensors.data(), count);
  op.reference({*call.attrs, all.first(call.inputs.size()), all.subspan(call.inputs.size())});
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const TensorView& output = call.outputs[i];
    round_from_f64(output.type.dtype, all[call.inputs.size() + i].data, output.type.elements(), output.data);
  }
}

template <size_t Index>
KernelDef reference_kernel(std::array<std::string, kOps>& names) {
  const OpDef& op = *all_ops()[Index];
  names[Index] = std::string(op.name) + "_reference";
  return {.op = op.name,
          .name = names[Index],
          .serves = serves,
          .workspace_bytes = workspace_bytes,
          .cost = cost,
          .run = [](const KernelCall& call) { run_reference(*all_ops()[Index], call); }};
}

template <size_t... Indices>
std::array<KernelDef, kOps> make_kernels(std::array<std::string, kOps>& names,
                                         std::index_sequence<Indices...>) {
  return {reference_kernel<Indices>(names)...};
}

}  // namespace

std::span<const KernelDef> reference_kernels() {
  static std::array<std::string, kOps> names;
  static const std::array<KernelDef, kOps> kernels = make_kernels(names, std::make_index_sequence<kOps>());
  return kernels;
}

}  // namespace tenon
