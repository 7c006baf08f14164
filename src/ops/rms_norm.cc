#include "ops/rms_norm.h"

#include <cmath>

#include "ops/rms_norm_grad_input.h"
#include "ops/rms_norm_grad_weight.h"
#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x"}, {"weight", Elements::floating, 1}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const Type& x = site.inputs[0];
  RETURN_IF_ERROR(expect(site, x.shape.rank() >= 1, "x has no innermost axis"));
  RETURN_IF_ERROR(expect_extent(site, "the length of weight", site.inputs[1].shape[0], x.shape[-1]));
  return std::vector<Type>{x};
}

std::vector<ValueId> gradient(const GradientSite& site) {
  const ValueId x = site.op.inputs[0], weight = site.op.inputs[1], dy = site.output_gradients[0];
  const double eps = site.op.attrs.real("eps");
  std::vector<ValueId> gradients(2);
  if (site.needed[0]) {
    gradients[0] = rms_norm_grad_input(site.builder, x, weight, dy, eps, site.op.attrs.real("weight_offset"));
  }
  if (site.needed[1]) gradients[1] = rms_norm_grad_weight(site.builder, x, dy, eps);
  return gradients;
}

void reference(const ReferenceCall& call) {
  const double eps = call.attrs.real("eps"), offset = call.attrs.real("weight_offset");
  const double* weight = call.inputs[1].data;
  const int64_t n = call.inputs[1].type.shape[0];
  const int64_t rows = call.inputs[0].type.shape.rows();
  for (int64_t r = 0; r < rows; ++r) {
    const double* x = call.inputs[0].data + r * n;
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
    const double rms = std::sqrt(squares / static_cast<double>(n) + eps);
    for (int64_t i = 0; i < n; ++i) call.outputs[0].data[r * n + i] = x[i] / rms * (weight[i] + offset);
  }
}

}  // namespace

const OpDef& rms_norm_op() {
  static constexpr OpDef def{.name = "rms_norm",
                             .infer = infer,
                             .gradient = gradient,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 4); },
                             .reference = reference};
  return def;
}

ValueId rms_norm(Builder& builder, ValueId x, ValueId weight, double eps, double weight_offset) {
  return builder.emit_one(rms_norm_op(), {x, weight}, {{"eps", eps}, {"weight_offset", weight_offset}});
}

}  // namespace tenon
