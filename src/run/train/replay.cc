#include "run/train/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "run/train/resume.h"
#include "run/train/run_paths.h"
#include "run/train/trainer.h"

namespace tenon {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

std::optional<ReplayDifference> difference(const RecordStep& recorded, const StepReport& computed) {
  const std::pair<const char*, std::pair<double, double>> values[] = {
      {"loss", {recorded.loss, computed.loss}},
      {"gradient norm", {recorded.gradient_norm, computed.gradient_norm}},
      {"learning rate", {recorded.learning_rate, computed.learning_rate}},
      {"trained tokens",
       {static_cast<double>(recorded.trained_tokens), static_cast<double>(computed.trained_tokens)}}};
  for (const auto& [what, pair] : values) {
    if (!same_bits(pair.first, pair.second))
      return ReplayDifference{computed.step, what, pair.first, pair.second};
  }
  return std::nullopt;
}

Status check_files(const RunRecord& record, const TrainJob& job, const std::string& run) {
  ASSIGN_OR_RETURN(const auto digests, run_digests(job));
  for (const auto& [name, digest] : record.header.digests) {
    const auto now = digests.find(name);
    if (now != digests.end() && now->second == digest) continue;
    return bad_argument(fmt::format("{} is not the one that the run was made with", name), run,
                        "Put it back as it was: another file gives other bits.");
  }
  return {};
}

}  // namespace

Result<ReplayPlan> plan_replay(const RunRecord& record, const std::string& subject) {
  ReplayPlan plan;
  RETURN_IF_ERROR(parse_recipe(record.header.recipe, subject, plan.recipe));
  plan.most_steps = record.steps.empty() ? 0 : record.steps.back().step;
  for (const RecordResume& event : record.resumes) {
    if (!event.recipe.empty() || event.reason == "rollback")
      plan.most_steps = std::min(plan.most_steps, event.step);
  }
  if (plan.most_steps == 0) return bad_argument("the record holds no step that can be replayed", subject);
  return plan;
}

Result<Replay> replay_run(const std::string& run, int64_t steps, Device& device) {
  ASSIGN_OR_RETURN(const RunRecord record, read_record(run_record_path(run)));
  ASSIGN_OR_RETURN(ReplayPlan plan, plan_replay(record, run_record_path(run)));
  steps = std::min(steps, plan.most_steps);
  plan.recipe.eval_every = 0;  // evaluation changes nothing that is compared
  plan.recipe.early_stop = 0;
  ASSIGN_OR_RETURN(const auto job, prepare_training(plan.recipe, device));
  RETURN_IF_ERROR(check_files(record, *job, run));
  Replay replay;
  if (device.facts().name != record.header.device)
    replay.other.push_back(
        fmt::format("the run was made on {}, this is {}", record.header.device, device.facts().name));
  TrainObserver observer;
  observer.step = [&](const StepReport& report) -> Status {
    replay.steps = report.step;
    replay.first_difference = difference(record.steps[static_cast<size_t>(report.step - 1)], report);
    return {};
  };
  observer.should_stop = [&] { return replay.steps >= steps || replay.first_difference.has_value(); };
  ASSIGN_OR_RETURN(const TrainResult result, run_training(*job, device, observer));
  CHECK(result.steps == replay.steps);
  return replay;
}

}  // namespace tenon
