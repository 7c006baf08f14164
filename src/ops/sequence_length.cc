#include "ops/sequence_length.h"

#include <algorithm>
#include <map>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"positions", Elements::i32, 1}, {"sequence", Elements::i32, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  RETURN_IF_ERROR(expect_equal_types(site));
  return std::vector<Type>{site.inputs[0]};
}

void reference(const ReferenceCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0];
  std::map<double, double> lengths;
  for (int64_t t = 0; t < tokens; ++t) {
    double& length = lengths[call.inputs[1].data[t]];
    length = std::max(length, call.inputs[0].data[t] + 1);
  }
  for (int64_t t = 0; t < tokens; ++t) call.outputs[0].data[t] = lengths[call.inputs[1].data[t]];
}

}  // namespace

const OpDef& sequence_length_op() {
  static constexpr OpDef def{.name = "sequence_length",
                             .infer = infer,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 1); },
                             .reference = reference};
  return def;
}

ValueId sequence_length(Builder& builder, ValueId positions, ValueId sequence) {
  return builder.emit_one(sequence_length_op(), {positions, sequence}, {});
}

}  // namespace tenon
