// Where an interrupted run goes on, and whether it is still the same run. Reads a run folder; writes nothing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "record/run_record.h"
#include "run/recipe.h"
#include "run/train/saved_state.h"
#include "run/train/trainer.h"

namespace tenon {

struct ResumePoint {
  TrainRecipe recipe;               // in force, with `out` the folder as it is called now
  std::optional<RunRecord> record;  // none: the run was killed before it recorded anything
  std::string checkpoint;           // path of the newest; empty: from the start
  std::optional<SavedState> state;  // of the checkpoint

  int64_t step() const { return state ? state->progress.step : 0; }
  // Whether the run came to its end.
  bool ended() const;
};

// Errors: not_found (no run in the folder); bad_file (a record or checkpoint that is damaged or does not
// belong to the other); bad_argument (recipe.yaml was edited: changes are given by name).
Result<ResumePoint> find_resume_point(const std::string& run);

struct RecipeChange {
  std::string name;  // of the option
  std::string before;
  std::string after;
};
std::vector<RecipeChange> recipe_changes(const TrainRecipe& before, const TrainRecipe& after);

// Content digests of everything that decides the run, by what it is: "model model.safetensors", "data".
// Errors: not_found, io.
Result<std::map<std::string, std::string>> run_digests(const TrainJob& job);

// Whether `job`, prepared from the recipe of the point and options on top of it, is the same run but for what
// may change: its length, its learning rate, what is saved and watched, and where files lie. Error:
// bad_argument that names everything else that differs.
Status check_same_run(const ResumePoint& point, const TrainJob& job,
                      const std::map<std::string, std::string>& digests);

}  // namespace tenon
