// From a recipe to a plan that fits: the programs of a run, planned, with as many blocks recomputed as the
// memory asks for. Runs nothing; `tenon plan` shows it and `tenon train` executes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "run/programs.h"
#include "run/recipe.h"
#include "run/session.h"

namespace tenon {

// "f32", "bf16", or "auto": bf16 where the device computes it natively, else f32.
DType resolve_compute(std::string_view compute, const DeviceFacts& facts);
ProgramSettings recipe_program_settings(const TrainRecipe& recipe, const Model& model,
                                        const DeviceFacts& facts);
AdapterOptions recipe_adapter_options(const TrainRecipe& recipe);

// The adapter to begin with: read from recipe.adapter, or new.
Result<AdapterSet> recipe_adapter(const TrainRecipe& recipe, const Model& model, const DeviceFacts& facts);

struct TrainPlan {
  Plan plan;
  std::vector<TrainedValue> trained;
  AdamWOptions adamw;
  int32_t recomputed_blocks = 0;
  int64_t budget_bytes = 0;  // of recipe.memory, or the device's memory
};

// Plans train step, optimiser step and evaluation within the budget where that is possible; the leanest plan
// where it is not (check_fits() tells). Errors as make_plan.
Result<TrainPlan> plan_training(const TrainRecipe& recipe, const Model& model,
                                const std::vector<AdapterModule>& modules, const Device& device);

// over_budget where the plan needs more than its budget, with the nearest settings that fit as hint.
Status check_fits(const TrainPlan& plan, const TrainRecipe& recipe, const Model& model,
                  const std::vector<AdapterModule>& modules, const Device& device);

}  // namespace tenon
