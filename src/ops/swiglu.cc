#include "ops/swiglu.h"

#include <cmath>

#include "ops/mul.h"
#include "ops/rules.h"
#include "ops/silu.h"
#include "ops/swiglu_grad.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"gate"}, {"up"}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  return infer_elementwise(site);
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!site.needed[0] && !site.needed[1]) return {ValueId{}, ValueId{}};
  const auto [dgate, dup] =
      swiglu_grad(site.builder, site.op.inputs[0], site.op.inputs[1], site.output_gradients[0]);
  return {site.needed[0] ? dgate : ValueId{}, site.needed[1] ? dup : ValueId{}};
}

std::vector<ValueId> expand(Builder& builder, std::span<const ValueId> inputs, const Attrs&) {
  return {mul(builder, silu(builder, inputs[0]), inputs[1])};
}

void reference(const ReferenceCall& call) {
  const double* gate = call.inputs[0].data;
  const double* up = call.inputs[1].data;
  const int64_t n = call.outputs[0].type.elements();
  for (int64_t i = 0; i < n; ++i) call.outputs[0].data[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
}

}  // namespace

const OpDef& swiglu_op() {
  static constexpr OpDef def{.name = "swiglu",
                             .infer = infer,
                             .gradient = gradient,
                             .expand = expand,
                             .aliases = alias_elementwise,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 5); },
                             .reference = reference};
  return def;
}

ValueId swiglu(Builder& builder, ValueId gate, ValueId up) {
  return builder.emit_one(swiglu_op(), {gate, up});
}

}  // namespace tenon
