#include "ops/sum.h"

#include "ops/fill.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x"}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  return std::vector<Type>{Type{DType::f32, Shape{1}}};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  if (!site.needed[0]) return {ValueId{}};
  const Type x = site.builder.type(site.op.inputs[0]);
  return {cast_to(site.builder, fill(site.builder, site.output_gradients[0], x.shape), x.dtype)};
}

Cost cost(const OpSite& site) {
  Cost cost = streaming_cost(site, 0);
  cost.flops = site.inputs[0].elements();
  return cost;
}

void reference(const ReferenceCall& call) {
  double total = 0;
  const int64_t n = call.inputs[0].type.elements();
  for (int64_t i = 0; i < n; ++i) total += call.inputs[0].data[i];
  call.outputs[0].data[0] = total;
}

}  // namespace

const OpDef& sum_op() {
  static constexpr OpDef def{
      .name = "sum", .infer = infer, .gradient = gradient, .cost = cost, .reference = reference};
  return def;
}

ValueId sum(Builder& builder, ValueId x) {
  return builder.emit_one(sum_op(), {x});
}

}  // namespace tenon
