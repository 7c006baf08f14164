#include "run/train/train_plan.h"

#include <fmt/format.h>

#include <utility>

#include "base/bytes.h"
#include "models/routers.h"
#include "passes/recompute.h"
#include "plan/fit.h"

namespace tenon {
namespace {

AdamWOptions recipe_adamw(const TrainRecipe& recipe) {
  return {recipe.beta1, recipe.beta2, recipe.eps, recipe.weight_decay, recipe.clip};
}

Result<TrainPlan> plan_with(const TrainRecipe& recipe, const Model& model,
                            const std::vector<AdapterModule>& modules, const Device& device,
                            int32_t recomputed_blocks) {
  TrainSettings settings;
  static_cast<ProgramSettings&>(settings) = recipe_program_settings(recipe, model, device.facts());
  settings.tokens = recipe.tokens_per_step;
  settings.dropout = recipe.dropout;
  settings.recompute_blocks = recomputed_blocks;
  settings.adamw = recipe_adamw(recipe);
  TrainPrograms programs = train_programs(model.spec, modules, settings);
  std::vector<Program> planned;
  planned.push_back(std::move(programs.train_step));
  planned.push_back(std::move(programs.optimiser_step));
  planned.push_back(std::move(programs.evaluate));
  TrainPlan out;
  ASSIGN_OR_RETURN(out.plan, plan_programs(std::move(planned), model, device, settings.without));
  out.trained = std::move(programs.trained);
  out.adamw = settings.adamw;
  out.recomputed_blocks = recomputed_blocks;
  return out;
}

// The fewest recomputed blocks that fit; all of them where none does. More blocks never need more memory.
Result<TrainPlan> plan_auto(const TrainRecipe& recipe, const Model& model,
                            const std::vector<AdapterModule>& modules, const Device& device, int64_t budget) {
  const int32_t blocks = static_cast<int32_t>(model.spec.blocks.size());
  ASSIGN_OR_RETURN(TrainPlan best, plan_with(recipe, model, modules, device, 0));
  if (fit(needed_bytes(best.plan), budget).fits) return best;
  ASSIGN_OR_RETURN(best, plan_with(recipe, model, modules, device, blocks));
  if (!fit(needed_bytes(best.plan), budget).fits) return best;
  int32_t low = 0, high = blocks;  // low does not fit, high does
  while (high - low > 1) {
    const int32_t middle = (low + high) / 2;
    ASSIGN_OR_RETURN(TrainPlan plan, plan_with(recipe, model, modules, device, middle));
    if (fit(needed_bytes(plan.plan), budget).fits) {
      high = middle;
      best = std::move(plan);
    } else {
      low = middle;
    }
  }
  return best;
}

std::vector<FitCandidate> candidates(const TrainRecipe& recipe, const Model& model,
                                     const std::vector<AdapterModule>& modules, const Device& device) {
  std::vector<FitCandidate> out;
  const int32_t blocks = static_cast<int32_t>(model.spec.blocks.size());
  const auto add = [&](std::string description, TrainRecipe changed, int32_t recomputed) {
    out.push_back({std::move(description), [=, &model, &modules, &device]() -> Result<int64_t> {
                     ASSIGN_OR_RETURN(const TrainPlan plan,
                                      plan_with(changed, model, modules, device, recomputed));
                     return needed_bytes(plan.plan);
                   }});
  };
  if (recipe.recompute == "none") add("--recompute auto", recipe, blocks);
  for (int64_t tokens = recipe.tokens_per_step / 2; tokens >= 64; tokens /= 2) {
    TrainRecipe fewer = recipe;
    fewer.tokens_per_step = tokens;
    add(fmt::format("--tokens-per-step {} --recompute blocks", tokens), fewer, blocks);
  }
  if (recipe.compute != "bf16") {
    TrainRecipe bf16 = recipe;
    bf16.compute = "bf16";
    add("--compute bf16 --recompute blocks", bf16, blocks);
  }
  return out;
}

}  // namespace

DType resolve_compute(std::string_view compute, const DeviceFacts& facts) {
  if (compute == "auto") return facts.has("avx512_bf16") || facts.has("bf16") ? DType::bf16 : DType::f32;
  return compute == "bf16" ? DType::bf16 : DType::f32;
}

ProgramSettings recipe_program_settings(const TrainRecipe& recipe, const Model& model,
                                        const DeviceFacts& facts) {
  ProgramSettings settings{resolve_compute(recipe.compute, facts), recipe.without,
                           choose_weight_dtypes(model, recipe.weights, facts)};
  choose_attention(recipe.attention, settings.without);
  return settings;
}

AdapterOptions recipe_adapter_options(const TrainRecipe& recipe) {
  AdapterOptions options;
  options.rank = recipe.rank;
  options.alpha = recipe.alpha;
  options.rslora = recipe.rslora;
  options.targets = recipe.targets;
  options.rank_pattern.insert(recipe.rank_pattern.begin(), recipe.rank_pattern.end());
  return options;
}

Result<AdapterSet> recipe_adapter(const TrainRecipe& recipe, const Model& model, const DeviceFacts& facts) {
  const Program forward = forward_program(model.spec, 1, recipe_program_settings(recipe, model, facts));
  if (!recipe.adapter.empty()) return read_adapter(recipe.adapter, forward);
  AdapterOptions options = recipe_adapter_options(recipe);
  options.not_linear = parameter_routers(model.spec);
  ASSIGN_OR_RETURN(std::vector<AdapterModule> modules, choose_modules(forward, options));
  return new_adapter(std::move(modules), options, recipe.dropout, static_cast<uint64_t>(recipe.seed));
}

Result<TrainPlan> plan_training(const TrainRecipe& recipe, const Model& model,
                                const std::vector<AdapterModule>& modules, const Device& device) {
  const int64_t budget = recipe.memory.bytes > 0 ? recipe.memory.bytes : device.facts().memory_bytes;
  const int32_t blocks = static_cast<int32_t>(model.spec.blocks.size());
  Result<TrainPlan> plan = recipe.recompute == "auto" ? plan_auto(recipe, model, modules, device, budget)
                                                      : plan_with(recipe, model, modules, device,
                                                                  recipe.recompute == "blocks" ? blocks : 0);
  if (plan.ok()) plan->budget_bytes = budget;
  return plan;
}

Status check_fits(const TrainPlan& plan, const TrainRecipe& recipe, const Model& model,
                  const std::vector<AdapterModule>& modules, const Device& device) {
  const FitVerdict verdict = fit(needed_bytes(plan.plan), plan.budget_bytes);
  if (verdict.fits) return {};
  std::string hint;
  for (const FitSuggestion& fits : suggest(candidates(recipe, model, modules, device), plan.budget_bytes)) {
    hint += fmt::format("{}{} ({})", hint.empty() ? "These fit: " : "; ", fits.description,
                        format_bytes(fits.needed_bytes));
  }
  if (hint.empty()) hint = "No setting of this model fits in that.";
  return over_budget(
      fmt::format("the run needs {}, {} more than the {} there are", format_bytes(verdict.needed_bytes),
                  format_bytes(verdict.shortfall_bytes), format_bytes(verdict.budget_bytes)),
      "--memory", hint);
}

}  // namespace tenon
