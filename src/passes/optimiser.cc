#include "passes/optimiser.h"

#include <cmath>

#include "ir/builder.h"
#include "ops/accumulate.h"
#include "ops/global_norm.h"
#include "ops/zero.h"

namespace tenon {

std::string gradient_sum_name(const std::string& value) {
  return value + ".gradient_sum";
}
std::string first_moment_name(const std::string& value) {
  return value + ".m";
}
std::string second_moment_name(const std::string& value) {
  return value + ".v";
}

std::array<float, 3> optimiser_hyper(double lr, int64_t step, const AdamWOptions& options) {
  const double t = static_cast<double>(step);
  return {static_cast<float>(lr), static_cast<float>(1 - std::pow(options.beta1, t)),
          static_cast<float>(1 - std::pow(options.beta2, t))};
}

void accumulate_gradients(Program& program, std::span<const TrainedValue> values,
                          std::span<const ValueId> gradients) {
  CHECK(values.size() == gradients.size());
  Builder b(program);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!gradients[i].valid()) continue;
    const Type type{DType::f32, values[i].shape};
    const ValueId total = b.add_static(Role::gradient_sum, gradient_sum_name(values[i].name), type);
    b.set_name(values[i].name);
    accumulate(b, total, gradients[i]);
  }
}

Program build_optimiser_step(std::span<const TrainedValue> values, const AdamWOptions& options) {
  Program program;
  program.name = "optimiser_step";
  Builder b(program);
  const ValueId hyper = b.add_static(Role::input, kHyperInput, {DType::f32, Shape{3}});
  std::vector<ValueId> sums;
  for (const TrainedValue& value : values) {
    sums.push_back(
        b.add_static(Role::gradient_sum, gradient_sum_name(value.name), {DType::f32, value.shape}));
  }
  b.set_name("gradient norm");
  const ValueId norm = global_norm(b, sums);
  for (size_t i = 0; i < values.size(); ++i) {
    const TrainedValue& value = values[i];
    const Type type{DType::f32, value.shape};
    const AdamWState state{b.add_static(value.role, value.name, type),
                           b.add_static(Role::optimiser_state, first_moment_name(value.name), type),
                           b.add_static(Role::optimiser_state, second_moment_name(value.name), type)};
    AdamWOptions own = options;
    if (!value.decays) own.weight_decay = 0;
    b.set_name(value.name);
    adamw(b, state, sums[i], norm, hyper, own);
    zero(b, sums[i]);
  }
  b.mark_output(norm, kGradientNormOutput);
  return program;
}

}  // namespace tenon
