// tenon replay: computes the first steps of a run again and compares them bit by bit.
#include <fmt/format.h>

#include <memory>

#include "base/json.h"
#include "cli/command.h"
#include "cli/device_option.h"
#include "run/train/replay.h"
#include "run/train/run_paths.h"

namespace tenon {
namespace {

struct ReplayArguments {
  std::string run;
  int64_t steps = 3;
  bool json = false;
};

void print_json(const ReplayArguments& a, const Replay& replay) {
  Json line = {{"run", a.run}, {"steps", replay.steps}};
  line["bit_equal"] = !replay.first_difference.has_value();
  if (const auto& difference = replay.first_difference) {
    line["first_difference"] = {{"step", difference->step},
                                {"what", difference->what},
                                {"recorded", difference->recorded},
                                {"computed", difference->computed}};
  }
  line["other"] = replay.other;
  fmt::print("{}\n", line.dump());
}

Status run_replay(const ReplayArguments& a) {
  ASSIGN_OR_RETURN(const RunRecord record, read_record(run_record_path(a.run)));
  ASSIGN_OR_RETURN(const ReplayPlan plan, plan_replay(record, run_record_path(a.run)));
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                   open_device({plan.recipe.device, plan.recipe.compute, plan.recipe.threads}));
  ASSIGN_OR_RETURN(const Replay replay, replay_run(a.run, a.steps, *device));
  if (a.json) {
    print_json(a, replay);
  } else {
    for (const std::string& other : replay.other) fmt::print("note: {}\n", other);
  }
  if (const auto& difference = replay.first_difference) {
    return device_error(
        fmt::format("step {} differs: its {} was {:.17g} and is now {:.17g}", difference->step,
                    difference->what, difference->recorded, difference->computed),
        a.run, "Another build or machine may round differently; on the same ones this is a bug.");
  }
  if (!a.json) fmt::print("The first {} steps are the same, bit for bit.\n", replay.steps);
  return {};
}

}  // namespace

Command replay_command() {
  const auto a = std::make_shared<ReplayArguments>();
  Command command;
  command.name = "replay";
  command.summary = "Compute the first steps of a run again and compare them bit by bit";
  command.details =
      "Reads the settings from the record, checks that model and data are the recorded files, and writes "
      "nothing. Exits with 1 where a step differs, naming the first.";
  command.example = "tenon replay RUN --steps 3";
  command.positionals = {{"RUN", &a->run, "Run folder"}};
  command.options = {{"steps", &a->steps, "Steps to compute", "N", {}, at_least(1)},
                     {"json", &a->json, "Print one JSON object"}};
  command.run = [a] { return run_replay(*a); };
  return command;
}

}  // namespace tenon
