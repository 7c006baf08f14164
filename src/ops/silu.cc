#include "ops/silu.h"

#include <cmath>

#include "ops/rules.h"
#include "ops/silu_grad.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x"}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  return infer_elementwise(site);
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}};
  return {silu_grad(site.builder, site.op.inputs[0], site.output_gradients[0])};
}

void reference(const ReferenceCall& call) {
  const double* x = call.inputs[0].data;
  const int64_t n = call.outputs[0].type.elements();
  for (int64_t i = 0; i < n; ++i) call.outputs[0].data[i] = x[i] / (1 + std::exp(-x[i]));
}

}  // namespace

const OpDef& silu_op() {
  static constexpr OpDef def{.name = "silu",
                             .infer = infer,
                             .gradient = gradient,
                             .aliases = alias_elementwise,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 4); },
                             .reference = reference};
  return def;
}

ValueId silu(Builder& builder, ValueId x) {
  return builder.emit_one(silu_op(), {x});
}

}  // namespace tenon
