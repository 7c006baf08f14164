// How long the programs of a plan will take, told before anything of the model is loaded: each kind of step
// (a kernel with its types) is run on its own, and the times are added up as often as the programs take such
// steps.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "device/device.h"
#include "plan/plan.h"

namespace tenon {

struct PredictedTime {
  std::string program;
  double seconds = 0;  // of one run
};

// In the order of the plan's programs, for sequences of `sequence_tokens` tokens (>= 1): packed ones, prompts
// from their first token on, and decoding at the end of one. Takes about as long as a block of the model
// does, and as much memory as the largest step. Errors of the device.
Result<std::vector<PredictedTime>> predict_times(const Plan& plan, Device& device, int64_t sequence_tokens);

}  // namespace tenon
