// A run in a few numbers, for lists and tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "record/run_record.h"

namespace tenon {

struct RunSummary {
  std::string state;  // "finished", "early_stop", "cancelled", "failed", "running", or "killed"
  int64_t steps = 0;
  int64_t trained_tokens = 0;
  double first_loss = 0;
  double last_loss = 0;
  std::optional<double> last_eval_loss;
  std::optional<double> best_eval_loss;
  int64_t best_eval_step = 0;
  double tokens_per_second = 0;  // mean over the steps, by time
  double seconds = 0;            // of the steps
};

// `running` says whether a process holds the run: a record does not tell a running run from a killed one.
RunSummary summarise(const RunRecord& record, bool running);

// The value of a setting in the recipe in force; empty where it has none.
std::string recipe_setting(const RunRecord& record, std::string_view name);

}  // namespace tenon
