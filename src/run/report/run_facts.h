// What the report shows beside the record: the memory account, the data, the time of kernels, samples. Kept
// in facts.json of the run folder, one JSON object whose keys are set one by one while the run goes on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "run/train/trainer.h"
#include "text/dataset_report.h"

namespace tenon {

struct Sample {
  std::vector<int32_t> ids;  // of the prompt; not kept in the file
  std::string prompt;
  std::string expected;  // the answer in the data
  std::string before;    // greedy, of the model as it was
  std::string after;
};

struct RunFacts {
  std::string memory;  // each a JSON value; empty: not known
  std::string data;
  std::string kernels;
  std::string samples;
};

// JSON values. The memory over a step is thinned to a few hundred places, the peak among them.
std::string memory_facts(const Plan& plan);
std::string data_facts(const DataReport& report);
std::string kernel_facts(const std::vector<KernelSeconds>& kernels);
std::string sample_facts(const std::vector<Sample>& samples);
std::vector<Sample> parse_samples(const std::string& json);  // empty where it is not one

// The file of the folder; nothing known where it is missing or not readable.
RunFacts read_facts(const std::string& run);
// Errors: io.
Status write_facts(const std::string& run, const RunFacts& facts);

}  // namespace tenon
