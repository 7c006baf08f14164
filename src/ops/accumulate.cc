#include "ops/accumulate.h"

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"total", Elements::f32}, {"x"}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  RETURN_IF_ERROR(expect(site, site.inputs[0].shape == site.inputs[1].shape, "total and x differ in shape"));
  return std::vector<Type>{site.inputs[0]};
}

std::vector<Alias> aliases(const OpSite&) {
  return {Alias{0, 0, AliasKind::must}};
}

void reference(const ReferenceCall& call) {
  const int64_t n = call.outputs[0].type.elements();
  for (int64_t i = 0; i < n; ++i) call.outputs[0].data[i] = call.inputs[0].data[i] + call.inputs[1].data[i];
}

}  // namespace

const OpDef& accumulate_op() {
  static constexpr OpDef def{.name = "accumulate",
                             .infer = infer,
                             .aliases = aliases,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 1); },
                             .reference = reference};
  return def;
}

ValueId accumulate(Builder& builder, ValueId total, ValueId x) {
  return builder.emit_one(accumulate_op(), {total, x});
}

}  // namespace tenon
