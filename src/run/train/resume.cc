#include "run/train/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "io/digest.h"
#include "io/folder.h"
#include "io/write_file.h"
#include "run/train/run_paths.h"

namespace tenon {
namespace {

// Files beside the weights that decide what the tokens are and what the arithmetic is.
constexpr std::array kSideFiles = {"config.json",
                                   "tokenizer.json",
                                   "tokenizer_config.json",
                                   "tokenizer.model",
                                   "spiece.model",
                                   "tekken.json",
                                   "tiktoken.model",
                                   "vocab.json",
                                   "merges.txt",
                                   "special_tokens_map.json",
                                   "added_tokens.json",
                                   "vocab.txt",
                                   "chat_template.jinja",
                                   "chat_template.json"};

// Files are judged by their content, wherever they lie now.
constexpr std::array<std::string_view, 5> kPaths = {"model", "data", "eval-data", "template", "adapter"};
constexpr std::array<std::string_view, 14> kMayChange = {
    "steps",     "epochs",     "lr",       "schedule",    "warmup-steps", "checkpoint-every", "keep",
    "keep-best", "early-stop", "on-spike", "tensorboard", "samples",      "memory",           "graphs"};
constexpr std::array<std::string_view, 2> kNotSettings = {"out", "overwrite"};

template <size_t N>
bool holds(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Result<TrainRecipe> recipe_of(const std::string& yaml, const std::string& subject) {
  TrainRecipe recipe;
  RETURN_IF_ERROR(parse_recipe(yaml, subject, recipe));
  return recipe;
}

// The record, if its first line was written as a whole. A first line that was cut is a run that was killed at
// its very start.
Result<std::optional<RunRecord>> find_record(const std::string& path) {
  if (!is_file(path)) return std::optional<RunRecord>();
  ASSIGN_OR_RETURN(const std::string text, read_file(path));
  if (text.find('\n') == std::string::npos) return std::optional<RunRecord>();
  ASSIGN_OR_RETURN(RunRecord record, parse_record(text, path));
  return std::optional(std::move(record));
}

// Recipes that the run had, the one in force last.
std::vector<std::string> recorded_recipes(const RunRecord& record) {
  std::vector<std::string> recipes = {record.header.recipe};
  for (const RecordResume& event : record.resumes) {
    if (!event.recipe.empty()) recipes.push_back(event.recipe);
  }
  return recipes;
}

// A change is recorded before recipe.yaml says it, so a kill between the two leaves the recipe before.
Status check_recipe_file(const std::string& path, const RunRecord& record) {
  if (!is_file(path)) return {};
  ASSIGN_OR_RETURN(const std::string text, read_file(path));
  const std::vector<std::string> recipes = recorded_recipes(record);
  if (std::ranges::find(recipes, text) != recipes.end()) return {};
  ASSIGN_OR_RETURN(const TrainRecipe edited, recipe_of(text, path));
  ASSIGN_OR_RETURN(const TrainRecipe recorded, recipe_of(recipes.back(), "record"));
  const std::vector<RecipeChange> changes = recipe_changes(recorded, edited);
  if (changes.empty()) return {};
  return bad_argument(
      fmt::format("{} was edited: the run has '{}', the file says '{}'", changes[0].name, changes[0].before,
                  changes[0].after),
      path, fmt::format("Give it by name: --resume RUN --{} {}", changes[0].name, changes[0].after));
}

Status find_checkpoint(const std::string& run, ResumePoint& point) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, checkpoint_steps(run));
  if (steps.empty()) return {};
  point.checkpoint = checkpoint_path(run, steps.back());
  if (!point.record) {
    return bad_file("there are checkpoints, but the record of the run is missing", run_record_path(run),
                    "Put it back; without it nothing says what the checkpoints belong to.");
  }
  ASSIGN_OR_RETURN(point.state, read_state(point.checkpoint));
  ASSIGN_OR_RETURN(const std::string text, read_file(run_record_path(run)));
  if (static_cast<int64_t>(text.size()) < point.state->record_bytes) {
    return bad_file(fmt::format("it is shorter than when {} was saved", point.checkpoint),
                    run_record_path(run), "Put the whole record back, or begin another run with --out.");
  }
  return {};
}

Error changed(const std::string& run, std::string what) {
  return bad_argument(fmt::format("it would not be the same run: {}", what), run,
                      "Put it back as it was, or begin another run with --out.");
}

Status add_digest(std::map<std::string, std::string>& digests, const std::string& what,
                  const std::string& path) {
  ASSIGN_OR_RETURN(digests[what], file_digest(path));
  return {};
}

// Of every file of a data set, and the weights that mix them.
Status add_data_digests(std::map<std::string, std::string>& digests, const std::string& what,
                        const Dataset& data) {
  for (size_t i = 0; i < data.files(); ++i) {
    const std::string name = data.files() == 1 ? what : fmt::format("{} {}", what, i + 1);
    RETURN_IF_ERROR(add_digest(digests, name, data.file(i).path()));
  }
  if (!data.mixture().weighted()) return {};
  std::string& weights = digests[what + " weights"];
  for (const MixtureSource& source : data.mixture().sources()) {
    weights += fmt::format("{}{}", weights.empty() ? "" : ",", *source.weight);
  }
  return {};
}

}  // namespace

bool ResumePoint::ended() const {
  return record && record->end && (record->end->status == "finished" || record->end->status == "early_stop");
}

Result<ResumePoint> find_resume_point(const std::string& run) {
  const std::string recipe_path = run_recipe_path(run), record_path = run_record_path(run);
  if (!is_folder(run))
    return not_found("there is no such run folder", run, "Name the folder that --out named.");
  ResumePoint point;
  ASSIGN_OR_RETURN(point.record, find_record(record_path));
  if (!point.record && !is_file(recipe_path)) {
    return not_found("the folder holds no run", run, "Begin it with --out, as it was begun before.");
  }
  if (point.record) {
    RETURN_IF_ERROR(check_recipe_file(recipe_path, *point.record));
    ASSIGN_OR_RETURN(point.recipe, recipe_of(point.record->recipe(), record_path));
  } else {
    RETURN_IF_ERROR(read_recipe(recipe_path, point.recipe));
  }
  point.recipe.out = run;
  point.recipe.overwrite = false;
  RETURN_IF_ERROR(find_checkpoint(run, point));
  return point;
}

std::vector<RecipeChange> recipe_changes(const TrainRecipe& before, const TrainRecipe& after) {
  TrainRecipe a = before, b = after;
  const std::vector<Option> old_options = recipe_options(a), new_options = recipe_options(b);
  std::vector<RecipeChange> changes;
  for (size_t i = 0; i < old_options.size(); ++i) {
    if (holds(kNotSettings, old_options[i].name)) continue;
    std::string was = option_text(old_options[i]), is = option_text(new_options[i]);
    if (was != is) changes.push_back({std::string(old_options[i].name), std::move(was), std::move(is)});
  }
  return changes;
}

Result<std::map<std::string, std::string>> run_digests(const TrainJob& job) {
  std::map<std::string, std::string> digests;
  for (const std::string& file : job.model.checkpoint.files())
    RETURN_IF_ERROR(add_digest(digests, "model " + file.substr(file.rfind('/') + 1), file));
  for (const char* name : kSideFiles) {
    if (const auto path = job.model.checkpoint.side_file(name))
      RETURN_IF_ERROR(add_digest(digests, fmt::format("model {}", name), *path));
  }
  RETURN_IF_ERROR(add_data_digests(digests, "data", job.data));
  if (job.eval_data) RETURN_IF_ERROR(add_data_digests(digests, "eval-data", *job.eval_data));
  if (!job.recipe.chat_template.empty())
    RETURN_IF_ERROR(add_digest(digests, "template", job.recipe.chat_template));
  if (!job.recipe.adapter.empty()) {
    for (const char* name : {"adapter_config.json", "adapter_model.safetensors"})
      RETURN_IF_ERROR(
          add_digest(digests, fmt::format("adapter {}", name), join_path(job.recipe.adapter, name)));
  }
  return digests;
}

Status check_same_run(const ResumePoint& point, const TrainJob& job,
                      const std::map<std::string, std::string>& digests) {
  std::string what;
  const auto add = [&](std::string text) { what += (what.empty() ? "" : "; ") + std::move(text); };
  for (const RecipeChange& change : recipe_changes(point.recipe, job.recipe)) {
    if (holds(kMayChange, change.name) || holds(kPaths, change.name)) continue;
    add(fmt::format("--{} was '{}' and is '{}'", change.name, change.before, change.after));
  }
  const auto& before = point.record ? point.record->header.digests : digests;
  std::set<std::string> names;
  for (const auto& [name, digest] : before) names.insert(name);
  for (const auto& [name, digest] : digests) names.insert(name);
  for (const std::string& name : names) {
    const auto was = before.find(name), is = digests.find(name);
    if (was == before.end())
      add(fmt::format("{} was not there", name));
    else if (is == digests.end())
      add(fmt::format("{} is missing", name));
    else if (was->second != is->second)
      add(fmt::format("{} has changed", name));
  }
  if (!what.empty()) return changed(job.recipe.out, std::move(what));
  if (job.total_steps < point.step()) {
    return bad_argument(
        fmt::format("{} steps were asked for, but {} are already taken", job.total_steps, point.step()),
        job.recipe.out, "Ask for more --steps.");
  }
  return {};
}

}  // namespace tenon
