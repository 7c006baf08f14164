#include "ops/mul.h"

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"a"}, {"b"}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  return infer_elementwise(site);
}

std::vector<ValueId> gradient(const GradientSite& site) {
  const ValueId dy = site.output_gradients[0];
  std::vector<ValueId> gradients(2);
  if (site.needed[0]) gradients[0] = mul(site.builder, dy, site.op.inputs[1]);
  if (site.needed[1]) gradients[1] = mul(site.builder, dy, site.op.inputs[0]);
  return gradients;
}

void reference(const ReferenceCall& call) {
  const int64_t n = call.outputs[0].type.elements();
  for (int64_t i = 0; i < n; ++i) call.outputs[0].data[i] = call.inputs[0].data[i] * call.inputs[1].data[i];
}

}  // namespace

const OpDef& mul_op() {
  static constexpr OpDef def{.name = "mul",
                             .infer = infer,
                             .gradient = gradient,
                             .aliases = alias_elementwise,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 1); },
                             .reference = reference};
  return def;
}

ValueId mul(Builder& builder, ValueId a, ValueId b) {
  return builder.emit_one(mul_op(), {a, b});
}

}  // namespace tenon
