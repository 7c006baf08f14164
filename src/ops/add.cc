#include "ops/add.h"

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
  return {site.needed[0] ? dy : ValueId{}, site.needed[1] ? dy : ValueId{}};
}

void reference(const ReferenceCall& call) {
  const int64_t n = call.outputs[0].type.elements();
  for (int64_t i = 0; i < n; ++i) call.outputs[0].data[i] = call.inputs[0].data[i] + call.inputs[1].data[i];
}

}  // namespace

const OpDef& add_op() {
  static constexpr OpDef def{.name = "add",
                             .infer = infer,
                             .gradient = gradient,
                             .aliases = alias_elementwise,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 1); },
                             .reference = reference};
  return def;
}

ValueId add(Builder& builder, ValueId a, ValueId b) {
  return builder.emit_one(add_op(), {a, b});
}

}  // namespace tenon
