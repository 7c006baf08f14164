// tenon train: fine-tunes a model on a data set into a run folder.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>

#include "base/bytes.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/device_option.h"
#include "cli/terminal.h"
#include "plan/fit.h"
#include "run/session.h"
#include "run/train/resume.h"
#include "run/train/run_folder.h"
#include "run/train/train_in_folder.h"
#include "run/train/trainer.h"

namespace tenon {
namespace {

struct TrainArguments {
  std::string recipe_file;
  std::string resume;  // run folder
  TrainRecipe recipe;
  TrainRecipe resumed;  // the settings that the run in `resume` has so far
  bool json = false;
};

std::atomic<bool> g_stop{false};  // set by a signal

// The first signal asks for a save at the end of the step; a second one ends the process as usual. A handler
// may call little more than write(2).
void ask_to_stop(int signal) {
  g_stop = true;
  std::signal(signal, SIG_DFL);
  constexpr std::string_view kSaid =
      "\nSaving after this step. The same signal again ends at once, as of the last checkpoint.\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kSaid.data(), kSaid.size());
}

int64_t parameters(const ModelSpec& spec) {
  int64_t count = 0;
  for (const WeightNeed& need : weights_needed(spec)) count += need.shape.elements();
  return count;
}

std::string describe(const TrainJob& job, const Device& device) {
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
      facts.kind == DeviceKind::cpu
          ? fmt::format("{} {} of ", facts.threads, facts.threads == 1 ? "thread" : "threads")
          : std::string();
  out += fmt::format("compute  {} on {}{}\n", job.recipe.compute, threads, facts.name);
  out += fmt::format("memory   {} planned of {}{}\n", format_bytes(needed_bytes(job.plan.plan)),
                     format_bytes(job.plan.budget_bytes),
                     job.plan.recomputed_blocks > 0
                         ? fmt::format(", {} blocks recomputed", job.plan.recomputed_blocks)
                         : "");
  if (const DeviceMemoryUse use = device.memory_use(); use.context_bytes > 0) {
    out += fmt::format("context  {} of the driver and its libraries, beside the plan\n",
                       format_bytes(use.context_bytes));
    out += fmt::format("loading  {} pinned on the host; {} of the device until weights are loaded\n",
                       format_bytes(use.pinned_bytes), format_bytes(use.loading_bytes));
  }
  if (const std::string kernels = attention_kernels(job.plan.plan); !kernels.empty()) {
    out += fmt::format("kernels  {}\n", kernels);
  }
  return out;
}

class Display {
 public:
  Display(const TrainJob& job, bool json) : json_(json) {
    if (!json) bar_ = std::make_unique<ProgressBar>(stderr, "step", job.total_steps);
  }

  void step(const StepReport& report) {
    if (json_) {
      const Json line = {{"step", report.step},
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
      const Json line = {
          {"eval_step", step}, {"eval_loss", result.loss}, {"token_accuracy", result.token_accuracy}};
      std::printf("%s\n", line.dump().c_str());
      return;
    }
    bar_->clear();
    std::fprintf(stderr, "step %lld: eval loss %.4f, token accuracy %.1f%%\n", static_cast<long long>(step),
                 result.loss, 100 * result.token_accuracy);
  }

  void note(const RecordNote& note) {
    if (json_) {
      const Json line = {
          {"note", note.kind}, {"step", note.step}, {"message", note.message}, {"action", note.action}};
      std::printf("%s\n", line.dump().c_str());
      return;
    }
    bar_->clear();
    const std::string where = note.step > 0 ? fmt::format("step {}: ", note.step) : std::string();
    const std::string action = note.action == "skip"       ? "; the step was thrown away"
                               : note.action == "rollback" ? "; the run went back to its last checkpoint"
                                                           : "";
    fmt::print(stderr, "warning: {}{}{}\n", where, note.message, action);
  }

  void finish() { bar_.reset(); }

 private:
  bool json_;
  std::unique_ptr<ProgressBar> bar_;
};

void print_summary(const TrainResult& result, const std::string& run) {
  fmt::print(stderr, "Trained {} steps in {}: loss {:.4f} -> {:.4f}\n", result.steps,
             human_duration(result.seconds), result.first_loss, result.last_loss);
  if (result.ended_early) {
    fmt::print(stderr, "Ended early: the evaluation loss was lowest after step {}.\n", result.best_step);
  }
  if (result.memory.used_bytes > 0) {
    fmt::print(stderr, "Device memory: {} planned and {} of context, {} in use.\n",
               format_bytes(result.planned_bytes), format_bytes(result.memory.context_bytes),
               format_bytes(result.memory.used_bytes));
  }
  fmt::print(stderr, "The adapter is in {}/adapter.\n", run);
}

Status prepare_recipe(TrainArguments& a) {
  if (!a.resume.empty()) {
    ASSIGN_OR_RETURN(const ResumePoint point, find_resume_point(a.resume));
    a.recipe = a.resumed = point.recipe;
  }
  if (!a.recipe_file.empty()) RETURN_IF_ERROR(read_recipe(a.recipe_file, a.recipe));
  return {};
}

Status check_resume(const TrainArguments& a) {
  if (a.resume.empty()) return {};
  if (a.recipe.overwrite) return bad_argument("cannot stand together with --resume", "--overwrite");
  if (a.recipe.out != a.resume)
    return bad_argument("a resumed run goes on in its own folder", "--out", "Leave --out away.");
  return {};
}

// A resumed run's rows were read before it began, and its data is the same to the byte: only a longer run
// comes to others.
Status check_rows(const TrainArguments& a, const TrainJob& job) {
  const bool longer = a.recipe.steps != a.resumed.steps || a.recipe.epochs != a.resumed.epochs;
  if (!a.resume.empty() && !longer) return {};
  std::unique_ptr<ProgressBar> bar;
  std::string shown;
  return check_rows_ahead(job, [&](std::string_view rows, int64_t done, int64_t total) {
    if (a.json) return;
    if (shown != rows) bar = std::make_unique<ProgressBar>(stderr, fmt::format("checking {}", rows), total);
    shown = rows;
    bar->update(done, "");
  });
}

Status run_train(TrainArguments& a) {
  RETURN_IF_ERROR(check_resume(a));
  RETURN_IF_ERROR(require_recipe(a.recipe, {"model", "data", "out"}));
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                   open_device({a.recipe.device, a.recipe.compute, a.recipe.threads, a.recipe.graphs}));
  if (a.resume.empty()) RETURN_IF_ERROR(check_run_folder(a.recipe.out, a.recipe.overwrite));
  ASSIGN_OR_RETURN(const std::unique_ptr<TrainJob> job, prepare_training(a.recipe, *device));
  if (!a.json) std::fputs(describe(*job, *device).c_str(), stderr);
  RETURN_IF_ERROR(check_rows(a, *job));
  ASSIGN_OR_RETURN(RunFolder folder, a.resume.empty() ? RunFolder::create(*job) : RunFolder::resume(*job));
  if (folder.complete()) {
    fmt::print(stderr, "The run is complete: {} steps. --steps N goes on.\n", folder.resumed_step());
    return {};
  }
  if (!a.resume.empty() && !a.json) fmt::print(stderr, "Going on from step {}.\n", folder.resumed_step());
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  Display display(*job, a.json);
  TrainObserver observer;
  observer.step = [&](const StepReport& report) {
    display.step(report);
    return Status();
  };
  observer.evaluated = [&](int64_t step, const EvalResult& result) {
    display.evaluated(step, result);
    return Status();
  };
  observer.note = [&](const RecordNote& note) {
    display.note(note);
    return Status();
  };
  observer.should_stop = [] { return g_stop.load(); };
  const Result<TrainResult> result = train_in_folder(*job, *device, folder, observer);
  display.finish();
  if (!result.ok()) return result.error();
  if (result->stopped) {
    return cancelled(
        fmt::format("stopped after step {} of {}; everything is saved", result->steps, job->total_steps), {},
        fmt::format("`tenon train --resume {}` goes on.", a.recipe.out));
  }
  if (!a.json) print_summary(*result, a.recipe.out);
  return {};
}

}  // namespace

Command train_command() {
  const auto a = std::make_shared<TrainArguments>();
  Command command;
  command.name = "train";
  command.summary = "Fine-tune a model on a data set";
  command.details =
      "Options and recipe files use the same names; options given with a recipe file come on top of it. "
      "The run folder receives the effective recipe, a record of every step, checkpoints, and the adapter "
      "in PEFT format. Ctrl-C saves and ends; --resume continues with the same bits as if nothing had "
      "happened.";
  command.example =
      "tenon train --model MODEL --data rows.jsonl --out RUN --rank 16 --lr 2e-4 --epochs 2\n"
      "tenon train recipe.yaml --lr 1e-4";
  command.positionals = {{"RECIPE", &a->recipe_file, "Recipe file (YAML)", false}};
  command.options = recipe_options(a->recipe);
  command.options.push_back(
      {"resume", &a->resume,
       "Go on with the run in this folder; length, learning rate and what is saved may be "
       "changed by name",
       "RUN"});
  command.options.push_back({"json", &a->json, "Print one line of JSON a step"});
  command.early_options = {"resume"};
  command.prepare = [a] { return prepare_recipe(*a); };
  command.run = [a] { return run_train(*a); };
  return command;
}

}  // namespace tenon
