// tenon train: fine-tunes a model on a data set into a run folder.
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/terminal.h"
#include "plan/fit.h"
#include "run/train/run_folder.h"
#include "run/train/trainer.h"

namespace tenon {
namespace {

struct TrainArguments {
  std::string recipe_file;
  TrainRecipe recipe;
  bool json = false;
};

std::atomic<bool> g_stop{false};  // set by a signal: the only thing a handler may do

void ask_to_stop(int) {
  g_stop = true;
}

int64_t parameters(const ModelSpec& spec) {
  int64_t count = 0;
  for (const WeightNeed& need : weights_needed(spec)) count += need.shape.elements();
  return count;
}

std::string describe(const TrainJob& job) {
  const DataReport& data = job.report;
  int64_t trained = 0;
  for (const TrainedValue& value : job.plan.trained) trained += value.shape.elements();
  std::string out;
  out += fmt::format("model    {}, {} parameters, {} blocks\n", job.model.spec.architecture,
                     human_count(parameters(job.model.spec)), job.model.spec.blocks.size());
  out += fmt::format("data     {} rows, {} tokens of which {} are trained on{}\n",
                     grouped_digits(data.scanned_rows), grouped_digits(data.tokens),
                     grouped_digits(data.trained_tokens),
                     data.scanned_rows < data.part_rows
                         ? fmt::format(" (a sample of {} rows)", grouped_digits(data.part_rows))
                         : "");
  if (data.cut + data.skipped + data.untrainable > 0) {
    out += fmt::format("         {} rows cut, {} skipped as too long, {} without a trained token\n", data.cut,
                       data.skipped, data.untrainable);
  }
  out +=
      fmt::format("adapter  {} modules, {} parameters\n", job.adapter.modules.size(), human_count(trained));
  const DeviceFacts& facts = job.plan.plan.facts;
  const std::string threads =
      facts.kind == DeviceKind::cpu ? fmt::format("{} threads of ", facts.threads) : std::string();
  out += fmt::format("compute  {} on {}{}\n", job.recipe.compute, threads, facts.name);
  out += fmt::format("memory   {} planned of {}{}\n", format_bytes(needed_bytes(job.plan.plan)),
                     format_bytes(job.plan.budget_bytes),
                     job.plan.recomputed_blocks > 0
                         ? fmt::format(", {} blocks recomputed", job.plan.recomputed_blocks)
                         : "");
  return out;
}

class Display {
 public:
  Display(const TrainJob& job, bool json) : json_(json) {
    if (!json) bar_ = std::make_unique<ProgressBar>(stderr, "step", job.total_steps);
  }

  void step(const StepReport& report) {
    if (json_) {
      const nlohmann::ordered_json line = {{"step", report.step},
                                           {"loss", report.loss},
                                           {"learning_rate", report.learning_rate},
                                           {"gradient_norm", report.gradient_norm},
                                           {"trained_tokens", report.trained_tokens},
                                           {"tokens_per_second", report.tokens_per_second}};
      std::printf("%s\n", line.dump().c_str());
      std::fflush(stdout);
      return;
    }
    bar_->update(report.step,
                 fmt::format("loss {:.4f}  {:.0f} tokens/s", report.loss, report.tokens_per_second));
  }

  void evaluated(int64_t step, const EvalResult& result) {
    if (json_) {
      const nlohmann::ordered_json line = {
          {"eval_step", step}, {"eval_loss", result.loss}, {"token_accuracy", result.token_accuracy}};
      std::printf("%s\n", line.dump().c_str());
      return;
    }
    bar_->clear();
    std::fprintf(stderr, "step %lld: eval loss %.4f, token accuracy %.1f%%\n", static_cast<long long>(step),
                 result.loss, 100 * result.token_accuracy);
  }

  void finish() { bar_.reset(); }

 private:
  bool json_;
  std::unique_ptr<ProgressBar> bar_;
};

Status run_train(TrainArguments& a) {
  RETURN_IF_ERROR(require_recipe(a.recipe, {"model", "data", "out"}));
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                   open_device({a.recipe.device, a.recipe.compute, a.recipe.threads, a.recipe.graphs}));
  RETURN_IF_ERROR(check_run_folder(a.recipe.out, a.recipe.overwrite));
  ASSIGN_OR_RETURN(const std::unique_ptr<TrainJob> job, prepare_training(a.recipe, *device));
  if (!a.json) std::fputs(describe(*job).c_str(), stderr);
  ASSIGN_OR_RETURN(RunFolder folder, RunFolder::create(*job));
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  Display display(*job, a.json);
  TrainObserver observer;
  observer.step = [&](const StepReport& report) {
    display.step(report);
    return folder.step(report);
  };
  observer.evaluated = [&](int64_t step, const EvalResult& result) {
    display.evaluated(step, result);
    return folder.evaluated(step, result);
  };
  observer.should_stop = [] { return g_stop.load(); };
  const Result<TrainResult> result = run_training(*job, *device, observer);
  display.finish();
  if (!result.ok()) {
    RETURN_IF_ERROR(folder.failed(result.error()));
    return result.error();
  }
  RETURN_IF_ERROR(folder.finished(*result));
  if (!a.json) {
    std::fprintf(stderr, "%s %lld steps in %s: loss %.4f -> %.4f\nThe adapter is in %s/adapter.\n",
                 result->stopped ? "Stopped after" : "Trained", static_cast<long long>(result->steps),
                 human_duration(result->seconds).c_str(), result->first_loss, result->last_loss,
                 a.recipe.out.c_str());
  }
  return {};
}

}  // namespace

Command train_command() {
  const auto a = std::make_shared<TrainArguments>();
  Command command;
  command.name = "train";
  command.summary = "Fine-tune a model on a data set";
  command.details =
      "Options and recipe files use the same names; options given with a recipe file come on top of it. The "
      "run folder "
      "receives the effective recipe, a record of every step, and the adapter in PEFT format.";
  command.example =
      "tenon train --model MODEL --data rows.jsonl --out RUN --rank 16 --lr 2e-4 --epochs 2\n"
      "tenon train recipe.yaml --lr 1e-4";
  command.positionals = {{"RECIPE", &a->recipe_file, "Recipe file (YAML)", false}};
  command.options = recipe_options(a->recipe);
  command.options.push_back({"json", &a->json, "Print one line of JSON a step"});
  command.prepare = [a]() -> Status {
    return a->recipe_file.empty() ? Status() : read_recipe(a->recipe_file, a->recipe);
  };
  command.run = [a] { return run_train(*a); };
  return command;
}

}  // namespace tenon
