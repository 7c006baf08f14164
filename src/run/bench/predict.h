// How long the programs of a plan will take, told before anything of the model is loaded. Of each kind of
// step (a kernel with its types and attributes) some are run in the order of the program, with the same
// weights where those lie in the model's files, so that caches hold what they would in the whole; a kind's
// time counts as often as the program takes such steps. Steps that alone would take long run over fewer rows,
// where the op's work is proportional to them.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "device/device.h"
#include "plan/plan.h"
#include "run/model.h"

namespace tenon {

struct PredictSettings {
  int64_t sequence_tokens = 1;       // of the sequences that are packed, or of the context of generation
  std::vector<std::string> without;  // kernels that the plan may not use
};

struct PredictedTime {
  std::string program;
  double seconds = 0;  // of one run
};

// The position of the first token of a run of `tokens` that is in the middle of the context: what predictions
// of prefill and decoding are made for.
int64_t middle_position(int64_t context_tokens, int64_t tokens);

// In the order of the plan's programs. `model`: null where no weight lies in a file. Takes a few seconds
// where a step takes more, and memory for some blocks of the model. Errors of the device.
Result<std::vector<PredictedTime>> predict_times(const Plan& plan, const Model* model, Device& device,
                                                 const PredictSettings& settings);

}  // namespace tenon
