// tenon plan: the memory account of a run, without running it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/bytes.h"
#include "base/json.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/streams.h"
#include "plan/fit.h"
#include "plan/report.h"
#include "run/bench/predict.h"
#include "run/cache_report.h"
#include "run/generator.h"
#include "run/session.h"
#include "run/train/train_plan.h"

namespace tenon {
namespace {

struct PlanArguments {
  std::string recipe_file;
  TrainRecipe recipe;
  int64_t prefill = 0;
  int64_t decode = 0;
  std::string facts;
  bool steps = false;
  bool time = false;
  bool json = false;
};

// Of the sequences whose time is predicted, or the context that they are in the middle of.
int64_t sequence_tokens(const PlanArguments& a) {
  const int64_t context = std::max(a.prefill, a.decode);
  if (context > 0) return context;
  return a.recipe.max_tokens > 0 ? a.recipe.max_tokens : a.recipe.tokens_per_step;
}

// `cache`: null where nothing is generated.
Status print_plan(const Plan& plan, const PlanArguments& a, const Model& model, Device& device,
                  int64_t budget, const CacheReport* cache = nullptr) {
  const MemoryReport report = memory_report(plan);
  const FitVerdict verdict = fit(needed_bytes(plan), budget);
  std::vector<PredictedTime> times;
  if (a.time && verdict.fits) {
    const PredictSettings settings{sequence_tokens(a),
                                   recipe_program_settings(a.recipe, model, device.facts()).without};
    ASSIGN_OR_RETURN(times, predict_times(plan, &model, device, settings));
  }
  if (a.json) {
    Json out = Json::parse(memory_report_json(report));
    out["needed_bytes"] = verdict.needed_bytes;
    out["budget_bytes"] = verdict.budget_bytes;
    out["fits"] = verdict.fits;
    if (cache) {
      out["cache_token_bytes"] = cache->token_bytes();
      out["cache_state_bytes"] = cache->state_bytes();
    }
    if (const std::string kernels = attention_kernels(plan); !kernels.empty()) out["attention"] = kernels;
    if (const DeviceMemoryUse use = device.memory_use(); use.context_bytes > 0) {
      out["context_bytes"] = use.context_bytes;
      out["pinned_bytes"] = use.pinned_bytes;
      out["loading_bytes"] = use.loading_bytes;
    }
    if (!times.empty()) out["predicted_sequence_tokens"] = sequence_tokens(a);
    for (const PredictedTime& time : times) out["predicted_seconds"][time.program] = time.seconds;
    write_output(out.dump(2) + "\n");
    return {};
  }
  write_output(memory_report_text(report));
  if (cache) write_output("\n" + cache_report_text(*cache));
  if (const DeviceMemoryUse use = device.memory_use(); use.context_bytes > 0) {
    write_output(fmt::format("{:18}{:>12} of the driver and its libraries, beside the plan\n", "context",
                             format_bytes(use.context_bytes)));
    write_output(fmt::format("{:18}{:>12} pinned on the host; {} of the device until weights are loaded\n",
                             "loading", format_bytes(use.pinned_bytes), format_bytes(use.loading_bytes)));
  }
  if (const std::string kernels = attention_kernels(plan); !kernels.empty()) {
    write_output(fmt::format("{:18}{}\n", "attention", kernels));
  }
  write_output(fmt::format("{}: {} of {}.\n", verdict.fits ? "It fits" : "It does not fit",
                           format_bytes(verdict.needed_bytes), format_bytes(budget)));
  for (const PredictedTime& time : times) {
    write_output(fmt::format("{:18}{:>9.4f} s a run of {}{}\n", "predicted time", time.seconds, time.program,
                             cache ? fmt::format(", in the middle of {} tokens", sequence_tokens(a)) : ""));
  }
  if (!a.steps) return {};
  for (const ProgramPlan& program : plan.programs) {
    write_output(fmt::format("\n{}\n{}", program.program.name, steps_text(program)));
  }
  return {};
}

Status plan_generation(const PlanArguments& a, const Model& model, Device& device, int64_t budget) {
  std::optional<AdapterSet> adapter;
  if (!a.recipe.adapter.empty()) {
    ASSIGN_OR_RETURN(adapter, recipe_adapter(a.recipe, model, device.facts()));
  }
  GeneratorSettings settings;
  static_cast<ProgramSettings&>(settings) = recipe_program_settings(a.recipe, model, device.facts());
  settings.context_tokens = std::max(a.prefill, a.decode);
  const std::vector<AdapterModule> modules = adapter ? adapter->modules : std::vector<AdapterModule>{};
  std::vector<Program> programs = generator_programs(model.spec, modules, settings);
  if (a.prefill == 0) programs.resize(1);  // decoding alone
  ASSIGN_OR_RETURN(const Plan plan, plan_programs(std::move(programs), model, device, settings.without));
  const CacheReport cache = cache_report(plan.programs.front().program);
  RETURN_IF_ERROR(print_plan(plan, a, model, device, budget, &cache));
  const FitVerdict verdict = fit(needed_bytes(plan), budget);
  if (verdict.fits) return {};
  return over_budget(fmt::format("generation needs {}, {} more than there are",
                                 format_bytes(verdict.needed_bytes), format_bytes(verdict.shortfall_bytes)),
                     "--memory", "Ask for a shorter context.");
}

Result<std::unique_ptr<Device>> device_to_plan_for(const PlanArguments& a) {
  if (!a.facts.empty()) return described_device(a.facts);
  return open_device({a.recipe.device, a.recipe.compute, a.recipe.threads, a.recipe.graphs});
}

Status run_plan(PlanArguments& a) {
  RETURN_IF_ERROR(check_recipe(a.recipe));
  RETURN_IF_ERROR(require_recipe(a.recipe, {"model"}));
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, device_to_plan_for(a));
  ASSIGN_OR_RETURN(const Model model, open_model(a.recipe.model));
  const int64_t budget = a.recipe.memory.bytes > 0 ? a.recipe.memory.bytes : device->facts().memory_bytes;
  if (a.prefill > 0 || a.decode > 0) return plan_generation(a, model, *device, budget);
  ASSIGN_OR_RETURN(const AdapterSet adapter, recipe_adapter(a.recipe, model, device->facts()));
  ASSIGN_OR_RETURN(const TrainPlan plan, plan_training(a.recipe, model, adapter.modules, *device));
  RETURN_IF_ERROR(print_plan(plan.plan, a, model, *device, budget));
  if (!a.json && plan.recomputed_blocks > 0) {
    std::printf("%d of %zu blocks are recomputed in the backward pass.\n", plan.recomputed_blocks,
                model.spec.blocks.size());
  }
  return check_fits(plan, a.recipe, model, adapter.modules, *device);
}

}  // namespace

Command plan_command() {
  const auto a = std::make_shared<PlanArguments>();
  Command command;
  command.name = "plan";
  command.summary = "Show the exact memory of a run without running it";
  command.details =
      "Takes train's options or a recipe file, or --prefill or --decode for generation. Prints bytes by "
      "role, the peak and what is alive at it, the lower bound, and whether it fits --memory; exits with "
      "3 where it does not, naming the nearest settings that do.";
  command.example =
      "tenon plan --model MODEL --tokens-per-step 2048 --rank 16 --memory 8GiB\n"
      "tenon plan recipe.yaml --steps\n"
      "tenon plan --model MODEL --decode 4096";
  command.positionals = {{"RECIPE", &a->recipe_file, "Recipe file, as tenon train takes it", false}};
  for (Option& option : recipe_options(a->recipe)) {
    if (option.name != "steps") command.options.push_back(std::move(option));
  }
  command.options.push_back({"prefill",
                             &a->prefill,
                             "Plan generation with prompts in a context of N tokens",
                             "N",
                             {},
                             at_least(0)});
  command.options.push_back(
      {"decode", &a->decode, "Plan decoding alone in a context of N tokens", "N", {}, at_least(0)});
  command.options.push_back({"facts", &a->facts,
                             "Plan for the machine that a file of facts describes (facts/), not for this one",
                             "FILE"});
  command.options.push_back({"steps", &a->steps, "List every step with its kernel and placement"});
  command.options.push_back(
      {"time", &a->time,
       "Also run some steps of each kind, and predict how long a run of each program takes"});
  command.options.push_back({"json", &a->json, "Print the account as JSON"});
  command.prepare = [a]() -> Status {
    return a->recipe_file.empty() ? Status() : read_recipe(a->recipe_file, a->recipe);
  };
  command.run = [a] { return run_plan(*a); };
  return command;
}

}  // namespace tenon
