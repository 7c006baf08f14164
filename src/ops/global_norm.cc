#include "ops/global_norm.h"

#include <cmath>

#include "ops/rules.h"

namespace tenon {
namespace {

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(expect(site, !site.inputs.empty(), "takes at least one input"));
  const std::vector<InputRule> rules(site.inputs.size(), InputRule{"an input", Elements::f32});
  RETURN_IF_ERROR(check_inputs(site, rules));
  return std::vector<Type>{Type{DType::f32, Shape{1}}};
}

Cost cost(const OpSite& site) {
  Cost cost = streaming_cost(site, 1);
  for (const Type& type : site.inputs) cost.flops += 2 * type.elements();
  return cost;
}

void reference(const ReferenceCall& call) {
  double total = 0;
  for (const ReferenceTensor& x : call.inputs) {
    const int64_t n = x.type.elements();
    for (int64_t i = 0; i < n; ++i) total += x.data[i] * x.data[i];
  }
  call.outputs[0].data[0] = std::sqrt(total);
}

}  // namespace

const OpDef& global_norm_op() {
  static constexpr OpDef def{.name = "global_norm", .infer = infer, .cost = cost, .reference = reference};
  return def;
}

ValueId global_norm(Builder& builder, std::vector<ValueId> inputs) {
  return builder.emit_one(global_norm_op(), std::move(inputs));
}

}  // namespace tenon
