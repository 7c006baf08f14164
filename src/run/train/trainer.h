// The training loop: data to micro-batches, micro-steps to optimiser steps, evaluation, when to save, what to
// do about a loss that jumps, the adapter at the end. Owns the order of things and their checks; what is
// shown, recorded or written is the observer's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "device/device.h"
#include "record/run_record.h"
#include "run/evaluate.h"
#include "run/recipe.h"
#include "run/train/saved_state.h"
#include "run/train/train_plan.h"
#include "text/dataset_report.h"

namespace tenon {

// A run made ready: everything read, checked and planned, nothing allocated and nothing written.
struct TrainJob {
  TrainRecipe recipe;  // effective: automatic settings resolved
  Model model;
  ModelText text;
  Dataset data;
  std::optional<Dataset> eval_data;
  AdapterSet adapter;
  TrainPlan plan;
  DataReport report;  // of the training part, or of a sample of it
  int64_t total_steps = 0;
  std::string resume_from;  // state file to go on from; empty: from the start
  std::string rollback_to;  // state file that --on-spike rollback goes back to; empty: none yet
};

// Errors: bad_argument, bad_file, not_found, unsupported, over_budget. `out` may be empty: planning only.
Result<std::unique_ptr<TrainJob>> prepare_training(const TrainRecipe& recipe, const Device& device);

// Reads every row that the run will come to, where prepare_training() looked at a sample only, so that a row
// that cannot be read, rendered or kept within the limit is refused before the first step. `progress` is told
// how many of how many "training rows" or "evaluation rows" are done. Errors: bad_file, bad_argument of the
// first such row.
using RowProgress = std::function<void(std::string_view rows, int64_t done, int64_t total)>;
Status check_rows_ahead(const TrainJob& job, const RowProgress& progress);

struct StepReport {
  int64_t step = 0;  // from 1
  int64_t total_steps = 0;
  double loss = 0;  // mean over the trained tokens of the step
  int64_t trained_tokens = 0;
  int64_t used_tokens = 0;
  double learning_rate = 0;
  double gradient_norm = 0;  // before clipping
  bool skipped = false;      // the gradients were thrown away
  double data_seconds = 0;
  double compute_seconds = 0;
  double optimiser_seconds = 0;
  double tokens_per_second = 0;  // used tokens over all seconds of the step
};

// Time of one program's steps that a kernel served, of one run of it.
struct KernelSeconds {
  std::string program;
  std::string kernel;
  int64_t calls = 0;
  double seconds = 0;
};

struct TrainObserver {
  std::function<void(const TrainJob&, const Plan&)> loaded;  // weights are in memory
  std::function<Status(const StepReport&)> step;
  std::function<Status(int64_t step, const EvalResult&)> evaluated;
  // Writes the state to disk and gives the file's path. Where empty, nothing is saved on the way.
  std::function<Result<std::string>(const TrainProgress&, Session&)> save;
  std::function<Status(const RecordNote&)> note;  // on the health of the run
  // The state of that file (TrainProgress::step) is in force again; steps after it do not count.
  std::function<Status(int64_t step, const std::string& file)> went_back;
  std::function<Status(const std::vector<KernelSeconds>&)> timed;  // once, of an early step
  std::function<bool()> should_stop;                               // asked after every step
};

struct TrainResult {
  int64_t steps = 0;
  bool stopped = false;      // by should_stop
  bool ended_early = false;  // by --early-stop
  int64_t best_step = 0;     // of the evaluation with the lowest loss; 0 where none was made
  double first_loss = 0;
  double last_loss = 0;
  std::optional<EvalResult> eval;
  double seconds = 0;
  int64_t planned_bytes = 0;    // arenas by the plan
  int64_t allocated_bytes = 0;  // arenas as allocated
  DeviceMemoryUse memory;       // of the device at the end; zeros on a CPU
  int64_t allocations_in_steps = 0;
  AdapterSet adapter;  // trained
};

// Runs a prepared job from the start, or from job.resume_from. The last state is saved when it ends or is
// stopped. Errors: bad_argument where the first loss is far above ln(vocab) or no gradient reaches the
// adapter; device where a value is not finite or the loss jumps under --on-spike stop (naming step and rows);
// what the observer returns; those of restore_state(); device errors.
Result<TrainResult> run_training(TrainJob& job, Device& device, const TrainObserver& observer);

}  // namespace tenon
