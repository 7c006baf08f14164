// Signs that a run is not well, from numbers that training has anyway: losses, gradient norms by layer, the
// settings. Pure functions of values; what is done about a finding is the trainer's, how it is shown the
// command's. Thresholds are wide on purpose: an alarm that healthy runs raise is not read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "passes/adapters.h"
#include "run/recipe.h"

namespace tenon {

// One line for a person: what is wrong, then what to do.
struct HealthFinding {
  std::string kind;  // "loss_spike", "loss_not_falling", "gradient_drift", "dead_layers", "large_layers",
                     // "learning_rate", "scale", "not_finite"
  std::string message;
  bool operator==(const HealthFinding&) const = default;
};

// The losses that count as normal: of steps that were neither skipped nor taken back. A part of the saved
// state, so that a resumed run judges as the one that went on.
struct LossHistory {
  static constexpr size_t kFirst = 25;
  static constexpr size_t kRecent = 50;

  std::vector<double> first;   // of the run, at most kFirst
  std::vector<double> recent;  // latest last, at most kRecent

  void add(double loss);
  bool operator==(const LossHistory&) const = default;
};

// How far `loss` lies above the recent losses, in robust standard deviations: (loss - median) / (1.4826 MAD)
// (Iglewicz and Hoaglin, 1993), with a floor under the deviation. Nothing where that is not alarming, where
// too few losses are known, or where the loss is lower than at the start of the run.
std::optional<double> loss_spike(const LossHistory& history, double loss);

// After steps 100, 200, 400, ...: whether the recent losses are no lower than the first ones.
std::optional<HealthFinding> loss_not_falling(const LossHistory& history, int64_t step);

// Whether learning rate and scale (alpha / rank, or alpha / sqrt(rank)) are far from what trains adapters.
std::vector<HealthFinding> implausible_settings(const TrainRecipe& recipe,
                                                std::span<const AdapterModule> modules);

// One adapted layer at one step.
struct LayerNorms {
  std::string name;
  double gradient = 0;  // norm of the gradients of A and B
  double change = 0;    // norm of scale * B A, bounded by scale * |B| |A|
};

// Follows layers over a run; each finding is made once. Not a part of the saved state: its findings never
// change what is computed.
class LayerHealth {
 public:
  static constexpr int64_t kEvery = 10;  // optimiser steps between two looks

  std::vector<HealthFinding> observe(std::span<const LayerNorms> layers);

 private:
  struct Layer {
    std::vector<double> first;   // gradient norms, at most kBaseline
    std::vector<double> recent;  // at most kRecent
    int64_t zeros = 0;           // looks in a row without any gradient
  };
  std::optional<HealthFinding> drift(std::span<const LayerNorms> layers);
  std::optional<HealthFinding> dead(std::span<const LayerNorms> layers);
  std::optional<HealthFinding> large(std::span<const LayerNorms> layers);

  std::vector<Layer> layers_;
  bool said_drift_ = false;
  bool said_dead_ = false;
  bool said_large_ = false;
};

}  // namespace tenon
