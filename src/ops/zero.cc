#include "ops/zero.h"

#include <algorithm>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x"}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  return std::vector<Type>{site.inputs[0]};
}

std::vector<Alias> aliases(const OpSite&) {
  return {Alias{0, 0, AliasKind::must}};
}

Cost cost(const OpSite& site) {
  return Cost{.flops = 0, .bytes_read = 0, .bytes_written = site.inputs[0].bytes()};
}

void reference(const ReferenceCall& call) {
  std::fill_n(call.outputs[0].data, call.outputs[0].type.elements(), 0.0);
}

}  // namespace

const OpDef& zero_op() {
  static constexpr OpDef def{
      .name = "zero", .infer = infer, .aliases = aliases, .cost = cost, .reference = reference};
  return def;
}

ValueId zero(Builder& builder, ValueId x) {
  return builder.emit_one(zero_op(), {x});
}

}  // namespace tenon
