#include "ops/column_sum.h"

#include <algorithm>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x"}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  RETURN_IF_ERROR(expect(site, site.inputs[0].shape.rank() >= 1, "x has no columns"));
  return std::vector<Type>{Type{DType::f32, Shape{site.inputs[0].shape[-1]}}};
}

Cost cost(const OpSite& site) {
  Cost cost = streaming_cost(site, 0);
  cost.flops = site.inputs[0].elements();
  return cost;
}

void reference(const ReferenceCall& call) {
  const int64_t n = call.outputs[0].type.shape[0];
  double* out = call.outputs[0].data;
  std::fill_n(out, n, 0.0);
  const int64_t elements = call.inputs[0].type.elements();
  for (int64_t i = 0; i < elements; ++i) out[i % n] += call.inputs[0].data[i];
}

}  // namespace

const OpDef& column_sum_op() {
  static constexpr OpDef def{.name = "column_sum", .infer = infer, .cost = cost, .reference = reference};
  return def;
}

ValueId column_sum(Builder& builder, ValueId x) {
  return builder.emit_one(column_sum_op(), {x});
}

}  // namespace tenon
