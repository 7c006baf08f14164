#include "ops/silu_grad.h"

#include <cmath>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x"}, {"dy"}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  return infer_elementwise(site);
}

void reference(const ReferenceCall& call) {
  const double* x = call.inputs[0].data;
  const double* dy = call.inputs[1].data;
  const int64_t n = call.outputs[0].type.elements();
  for (int64_t i = 0; i < n; ++i) {
    const double s = 1 / (1 + std::exp(-x[i]));
    call.outputs[0].data[i] = dy[i] * s * (1 + x[i] * (1 - s));
  }
}

}  // namespace

const OpDef& silu_grad_op() {
  static constexpr OpDef def{.name = "silu_grad",
                             .infer = infer,
                             .aliases = alias_elementwise,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 8); },
                             .reference = reference};
  return def;
}

ValueId silu_grad(Builder& builder, ValueId x, ValueId dy) {
  return builder.emit_one(silu_grad_op(), {x, dy});
}

}  // namespace tenon
