#include "ops/rms_norm_grad_input.h"

#include <cmath>

#include "ops/rules.h"

namespace tenon {
namespace {

constexpr InputRule kInputs[] = {{"x"}, {"weight", Elements::floating, 1}, {"dy"}};

InferredTypes infer(const OpSite& site) {
  RETURN_IF_ERROR(check_inputs(site, kInputs));
  const Type& x = site.inputs[0];
  RETURN_IF_ERROR(expect(site, x.shape.rank() >= 1, "x has no innermost axis"));
  RETURN_IF_ERROR(expect_extent(site, "the length of weight", site.inputs[1].shape[0], x.shape[-1]));
  RETURN_IF_ERROR(expect(site, site.inputs[2] == x, "x and dy differ in type"));
  return std::vector<Type>{x};
}

void reference(const ReferenceCall& call) {
  const double eps = call.attrs.real("eps"), offset = call.attrs.real("weight_offset");
  const double* weight = call.inputs[1].data;
  const int64_t n = call.inputs[1].type.shape[0];
  const int64_t rows = call.inputs[0].type.shape.rows();
  for (int64_t row = 0; row < rows; ++row) {
    const double* x = call.inputs[0].data + row * n;
    const double* dy = call.inputs[2].data + row * n;
    double squares = 0, products = 0;
    for (int64_t i = 0; i < n; ++i) {
      squares += x[i] * x[i];
      products += dy[i] * (weight[i] + offset) * x[i];
    }
    const double count = static_cast<double>(n);
    const double r = 1 / std::sqrt(squares / count + eps);
    for (int64_t i = 0; i < n; ++i) {
      const double g = dy[i] * (weight[i] + offset);
      call.outputs[0].data[row * n + i] = r * (g - x[i] * r * r * products / count);
    }
  }
}

}  // namespace

const OpDef& rms_norm_grad_input_op() {
  static constexpr OpDef def{.name = "rms_norm_grad_input",
                             .infer = infer,
                             .cost = [](const OpSite& site) { return streaming_cost(site, 9); },
                             .reference = reference};
  return def;
}

ValueId rms_norm_grad_input(Builder& builder, ValueId x, ValueId weight, ValueId dy, double eps,
                            double weight_offset) {
  return builder.emit_one(rms_norm_grad_input_op(), {x, weight, dy},
                          {{"eps", eps}, {"weight_offset", weight_offset}});
}

}  // namespace tenon
