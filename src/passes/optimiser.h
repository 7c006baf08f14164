// Gradient accumulation and the optimiser as ops, so that their memory is planned with the rest. The
// micro-step adds its gradients to sums; the optimiser step, a program of its own, reads the sums, updates
// and clears them.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "ir/program.h"
#include "ops/adamw.h"

namespace tenon {

struct TrainedValue {
  std::string name;
  Shape shape;
  Role role = Role::adapter;
  bool decays = true;  // whether weight decay applies
};

// Names of the state of a trained value.
std::string gradient_sum_name(const std::string& value);
std::string first_moment_name(const std::string& value);
std::string second_moment_name(const std::string& value);

// Appends sum += gradient for each value; gradients are f32 and may be invalid (then nothing is added).
void accumulate_gradients(Program& program, std::span<const TrainedValue> values,
                          std::span<const ValueId> gradients);

// Input of the optimiser step: f32 [3] = learning rate, 1 - beta1^step, 1 - beta2^step.
inline constexpr const char* kHyperInput = "hyper";
std::array<float, 3> optimiser_hyper(double lr, int64_t step,
                                     const AdamWOptions& options);  // step counts from 1
// Output: f32 [1], the norm of all gradients before clipping.
inline constexpr const char* kGradientNormOutput = "gradient_norm";

Program build_optimiser_step(std::span<const TrainedValue> values, const AdamWOptions& options);

}  // namespace tenon
