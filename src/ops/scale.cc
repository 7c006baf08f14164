#include "ops/scale.h"

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x"}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  return infer_elementwise(site);
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}};
  return {scale(site.builder, site.output_gradients[0], site.op.attrs.real("factor"))};
}

void reference(const ReferenceCall& call) {
  const double factor = call.attrs.real("factor");
  const int64_t n = call.outputs[0].type.elements();
  for (int64_t i = 0; i < n; ++i) call.outputs[0].data[i] = factor * call.inputs[0].data[i];
}

}  // namespace

const OpDef& scale_op() {
  static constexpr OpDef def{.name = "scale",
                             .infer = infer,
                             .gradient = gradient,
                             .aliases = alias_elementwise,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 1); },
                             .reference = reference};
  return def;
}

ValueId scale(Builder& builder, ValueId x, double factor) {
  return builder.emit_one(scale_op(), {x}, {{"factor", factor}});
}

}  // namespace tenon
