#include "ops/rms_norm_grad_weight.h"

#include <algorithm>
#include <cmath>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x"}, {"dy"}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  RETURN_IF_ERROR(expect(site, site.inputs[0].shape.rank() >= 1, "x has no innermost axis"));
  RETURN_IF_ERROR(expect_equal_types(site));
  return std::vector<Type>{Type{DType::f32, Shape{site.inputs[0].shape[-1]}}};
}

Cost cost(const OpSite& site) {
  Cost cost = streaming_cost(site, 0);
  cost.flops = 5 * site.inputs[0].elements();
  return cost;
}

void reference(const ReferenceCall& call) {
  const double eps = call.attrs.real("eps");
  const int64_t n = call.outputs[0].type.shape[0];
  const int64_t rows = call.inputs[0].type.shape.rows();
  std::fill_n(call.outputs[0].data, n, 0.0);
  for (int64_t r = 0; r < rows; ++r) {
    const double* x = call.inputs[0].data + r * n;
    const double* dy = call.inputs[1].data + r * n;
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
    const double rms = std::sqrt(squares / static_cast<double>(n) + eps);
    for (int64_t i = 0; i < n; ++i) call.outputs[0].data[i] += dy[i] * x[i] / rms;
  }
}

}  // namespace

const OpDef& rms_norm_grad_weight_op() {
  static constexpr OpDef def{
      .name = "rms_norm_grad_weight", .infer = infer, .cost = cost, .reference = reference};
  return def;
}

ValueId rms_norm_grad_weight(Builder& builder, ValueId x, ValueId dy, double eps) {
  return builder.emit_one(rms_norm_grad_weight_op(), {x, dy}, {{"eps", eps}});
}

}  // namespace tenon
