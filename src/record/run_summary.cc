#include "record/run_summary.h"

#include <sstream>

namespace tenon {

RunSummary summarise(const RunRecord& record, bool running) {
  RunSummary out;
  out.state = running ? "running" : record.end ? record.end->status : "killed";
  double tokens = 0;
  for (const RecordStep& step : record.steps) {
    double seconds = 0;
    for (const auto& [phase, each] : step.seconds) seconds += each;
    out.seconds += seconds;
    tokens += step.tokens_per_second * seconds;
    out.trained_tokens += step.trained_tokens;
  }
  if (!record.steps.empty()) {
    out.steps = record.steps.back().step;
    out.first_loss = record.steps.front().loss;
    out.last_loss = record.steps.back().loss;
  }
  if (out.seconds > 0) out.tokens_per_second = tokens / out.seconds;
  for (const RecordEval& eval : record.evals) {
    out.last_eval_loss = eval.loss;
    if (out.best_eval_loss && eval.loss >= *out.best_eval_loss) continue;
    out.best_eval_loss = eval.loss;
    out.best_eval_step = eval.step;
  }
  return out;
}

std::string recipe_setting(const RunRecord& record, std::string_view name) {
  std::istringstream lines(record.recipe());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name) && line.substr(name.size()).starts_with(": "))
      return line.substr(name.size() + 2);
  }
  return {};
}

}  // namespace tenon
