#include "run/train/run_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "io/folder.h"

namespace tenon {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";

// The step of a checkpoint's file name; -1 where it is not one.
int64_t step_of(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return -1;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  int64_t step = -1;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  return error == std::errc() && stop == name.data() + name.size() ? step : -1;
}

}  // namespace

std::string run_recipe_path(const std::string& run) {
  return join_path(run, "recipe.yaml");
}
std::string run_record_path(const std::string& run) {
  return join_path(run, "record.jsonl");
}
std::string run_report_path(const std::string& run) {
  return join_path(run, "report.html");
}
std::string run_facts_path(const std::string& run) {
  return join_path(run, "facts.json");
}
std::string run_event_folder(const std::string& run) {
  return join_path(run, "tensorboard");
}
std::string run_adapter_folder(const std::string& run) {
  return join_path(run, "adapter");
}
std::string run_best_folder(const std::string& run) {
  return join_path(run, "best");
}
std::string run_checkpoint_folder(const std::string& run) {
  return join_path(run, "checkpoints");
}

std::string checkpoint_path(const std::string& run, int64_t step) {
  return join_path(run_checkpoint_folder(run), fmt::format("{}{:08}{}", kPrefix, step, kSuffix));
}

Result<std::vector<int64_t>> checkpoint_steps(const std::string& run) {
  std::vector<int64_t> steps;
  const std::string folder = run_checkpoint_folder(run);
  if (!is_folder(folder)) return steps;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, list_folder(folder));
  for (const std::string& name : names) {
    const int64_t step = step_of(name);
    if (step >= 0) steps.push_back(step);
  }
  std::ranges::sort(steps);
  return steps;
}

}  // namespace tenon
