#include "ops/swiglu_grad.h"

#include <cmath>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"gate"}, {"up"}, {"dy"}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  RETURN_IF_ERROR(expect_equal_types(site));
  return std::vector<Type>{site.inputs[0], site.inputs[0]};
}

void reference(const ReferenceCall& call) {
  const double* gate = call.inputs[0].data;
  const double* up = call.inputs[1].data;
  const double* dy = call.inputs[2].data;
  const int64_t n = call.outputs[0].type.elements();
  for (int64_t i = 0; i < n; ++i) {
    const double s = 1 / (1 + std::exp(-gate[i]));
    call.outputs[0].data[i] = dy[i] * up[i] * s * (1 + gate[i] * (1 - s));
    call.outputs[1].data[i] = dy[i] * gate[i] * s;
  }
}

}  // namespace

const OpDef& swiglu_grad_op() {
  static constexpr OpDef def{.name = "swiglu_grad",
                             .infer = infer,
                             .aliases = alias_elementwise,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 6); },
                             .reference = reference};
  return def;
}

std::array<ValueId, 2> swiglu_grad(Builder& builder, ValueId gate, ValueId up, ValueId dy) {
  const auto outputs = builder.emit(swiglu_grad_op(), {gate, up, dy});
  return {outputs[0], outputs[1]};
}

}  // namespace tenon
