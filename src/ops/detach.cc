#include "ops/detach.h"

#include <algorithm>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x"}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  return std::vector<Type>{site.inputs[0]};
}

}  // namespace

const OpDef& detach_op() {
  static constexpr OpDef def{.name = "detach",
                             .infer = infer,
                             .gradient = [](const GradientSite&) { return std::vector<ValueId>(1); },
                             .aliases = alias_elementwise,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 0); },
                             .reference =
                                 [](const ReferenceCall& call) {
                                   std::copy_n(call.inputs[0].data, call.outputs[0].type.elements(),
                                               call.outputs[0].data);
                                 }};
  return def;
}

ValueId detach(Builder& builder, ValueId x) {
  return builder.emit_one(detach_op(), {x});
}

}  // namespace tenon
