// Computes the first steps of a recorded run again and says whether they have the same bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/device.h"
#include "record/run_record.h"
#include "run/recipe.h"

namespace tenon {

struct ReplayDifference {
  int64_t step = 0;
  std::string what;  // "loss"
  double recorded = 0;
  double computed = 0;
};

struct Replay {
  int64_t steps = 0;  // compared
  std::optional<ReplayDifference> first_difference;
  std::vector<std::string> other;  // what is not as it was recorded but need not matter: "device"
};

// The settings that the first steps of a run were made with, and how many there are before a resumption
// changed them or went back.
struct ReplayPlan {
  TrainRecipe recipe;
  int64_t most_steps = 0;
};
// Error: bad_argument where the record holds no step.
Result<ReplayPlan> plan_replay(const RunRecord& record, const std::string& subject);

// Replays up to `steps` of them. Errors: bad_argument where a file is not the recorded one any more (naming
// it); those of training.
Result<Replay> replay_run(const std::string& run, int64_t steps, Device& device);

}  // namespace tenon
