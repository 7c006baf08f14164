// Answers of a model to rows of its data, to show what training changed. A program of its own: nothing of it
// is in memory while training runs.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "run/report/run_facts.h"
#include "run/train/trainer.h"

namespace tenon {

// The prompts and answers in the data of the first `count` rows that can be used, of the part that is set
// aside for evaluation where there is one. Errors: those of load_row.
Result<std::vector<Sample>> sample_prompts(const TrainJob& job, int64_t count);

// Sets `before` or `after` of every sample to the greedy reply of the model with that adapter. Errors:
// over_budget where generation does not fit the memory of the run; device errors.
Status answer_samples(const TrainJob& job, Device& device, const AdapterSet& adapter,
                      std::string Sample::*field, std::vector<Sample>& samples);

}  // namespace tenon
