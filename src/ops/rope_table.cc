#include "ops/rope_table.h"

#include <cmath>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"positions", Elements::i32, 1}, {"inv_freq", Elements::f32, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  return std::vector<Type>{Type{DType::f32, Shape{site.inputs[0].shape[0], 2, site.inputs[1].shape[0]}}};
}

void reference(const ReferenceCall& call) {
  const double amplitude = call.attrs.real("amplitude");
  const int64_t tokens = call.inputs[0].type.shape[0], pairs = call.inputs[1].type.shape[0];
  for (int64_t t = 0; t < tokens; ++t) {
    double* cosines = call.outputs[0].data + t * 2 * pairs;
    for (int64_t i = 0; i < pairs; ++i) {
      const double angle = call.inputs[0].data[t] * call.inputs[1].data[i];
      cosines[i] = amplitude * std::cos(angle);
      cosines[pairs + i] = amplitude * std::sin(angle);
    }
  }
}

}  // namespace

const OpDef& rope_table_op() {
  static constexpr OpDef def{.name = "rope_table",
                             .infer = infer,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 2); },
                             .reference = reference};
  return def;
}

ValueId rope_table(Builder& builder, ValueId positions, ValueId inv_freq, double amplitude) {
  return builder.emit_one(rope_table_op(), {positions, inv_freq}, {{"amplitude", amplitude}});
}

}  // namespace tenon
