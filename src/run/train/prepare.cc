#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/checked_math.h"
#include "base/iso_time.h"
#include "base/threads.h"
#include "run/train/stream_settings.h"
#include "run/train/trainer.h"
#include "text/rows_ahead.h"

namespace tenon {
namespace {

// Rows read to describe a data set and to count the steps of an epoch. More rows than this are estimated from
// as many.
constexpr int64_t kReportRows = 20000;
// Rows read ahead over those that the run should need by the mean length of the sample.
constexpr double kAheadMargin = 1.25;

Result<TrainRecipe> effective_recipe(const TrainRecipe& given, const Device& device) {
  RETURN_IF_ERROR(check_recipe(given));
  RETURN_IF_ERROR(require_recipe(given, {"model", "data"}));
  TrainRecipe recipe = given;
  recipe.compute = dtype_name(resolve_compute(given.compute, device.facts()));
  recipe.threads = device.facts().threads;
  if (recipe.max_tokens == 0) recipe.max_tokens = recipe.tokens_per_step;
  return recipe;
}

// Rows are read by the processor's threads, wherever the run computes.
int row_threads(const TrainJob& job) {
  const DeviceFacts& facts = job.plan.plan.facts;
  return facts.kind == DeviceKind::cpu ? static_cast<int>(facts.threads) : available_threads();
}

// Optimiser steps that `epochs` take: exact packing for a small set, by mean length for a large one.
Result<int64_t> count_steps(const TrainJob& job) {
  const TrainRecipe& recipe = job.recipe;
  if (recipe.steps > 0) return recipe.steps;
  const double slots = static_cast<double>(recipe.tokens_per_step * recipe.accumulate);
  if (job.report.scanned_rows < job.report.part_rows) {
    const double rows = static_cast<double>(job.report.part_rows) * static_cast<double>(job.report.usable) /
                        static_cast<double>(job.report.scanned_rows);
    const double mean = static_cast<double>(job.report.tokens) / static_cast<double>(job.report.usable);
    return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(recipe.epochs * rows * mean / slots)));
  }
  ASSIGN_OR_RETURN(DataStream stream, DataStream::open(job.data, stream_settings(job, DataPart::train)));
  int64_t batches = 0;
  bool end = false;
  while (!end) {
    ASSIGN_OR_RETURN(const MicroBatch batch, stream.next());
    ++batches;
    end = batch.epoch_end;
  }
  const double steps = recipe.epochs * static_cast<double>(batches) / static_cast<double>(recipe.accumulate);
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(steps)));
}

struct EvalRows {
  const Dataset& dataset;
  StreamSettings settings;
};

std::optional<EvalRows> eval_rows(const TrainJob& job) {
  if (!job.eval_data && job.recipe.eval_fraction == 0) return std::nullopt;
  EvalRows rows{job.eval_data ? *job.eval_data : job.data, stream_settings(job, DataPart::eval)};
  if (job.eval_data) rows.settings.part = DataPart::all;
  return rows;
}

// Rows that cannot be evaluated on are refused before the run, not at its first evaluation.
Status check_eval_rows(const TrainJob& job, ThreadPool& threads) {
  const std::optional<EvalRows> rows = eval_rows(job);
  if (rows) RETURN_IF_ERROR(report_dataset(rows->dataset, rows->settings, kReportRows, &threads));
  return {};
}

// Places of the data's order that the run should come to, by the mean length of the sample's rows.
int64_t needed_slots(const TrainJob& job) {
  const TrainRecipe& recipe = job.recipe;
  const double tokens =
      static_cast<double>(job.total_steps) * static_cast<double>(recipe.accumulate * recipe.tokens_per_step);
  const double tokens_of_a_row =
      static_cast<double>(job.report.tokens) / static_cast<double>(job.report.scanned_rows);
  const double part = static_cast<double>(job.report.part_rows) / static_cast<double>(job.report.rows);
  const double slots = kAheadMargin * tokens / tokens_of_a_row / part;
  return slots < static_cast<double>(job.report.rows) ? static_cast<int64_t>(slots) + 1 : job.report.rows;
}

}  // namespace

StreamSettings stream_settings(const TrainJob& job, DataPart part) {
  const TrainRecipe& recipe = job.recipe;
  StreamSettings settings;
  settings.rows.render.chat_template = job.text.chat_template ? &*job.text.chat_template : nullptr;
  settings.rows.render.tokenizer = &job.text.tokenizer;
  settings.rows.render.options = job.text.render;
  settings.rows.render.train_on = *train_on_from_name(recipe.train_on);
  settings.rows.tokens.tokenizer = &job.text.tokenizer;
  settings.rows.tokens.max_tokens = static_cast<int32_t>(recipe.max_tokens);
  settings.rows.tokens.too_long = *too_long_from_name(recipe.too_long);
  settings.tokens_per_step = static_cast<int32_t>(recipe.tokens_per_step);
  settings.seed = static_cast<uint64_t>(recipe.seed);
  settings.eval_fraction = recipe.eval_fraction;
  settings.part = recipe.eval_fraction > 0 ? part : DataPart::all;
  return settings;
}

Result<std::unique_ptr<TrainJob>> prepare_training(const TrainRecipe& given, const Device& device) {
  ASSIGN_OR_RETURN(TrainRecipe recipe, effective_recipe(given, device));
  ASSIGN_OR_RETURN(Model model, open_model(recipe.model));
  ASSIGN_OR_RETURN(ModelText text, open_text(model, recipe.chat_template, recipe.clock));
  // Decided once: a run that goes on or is replayed renders the same bytes.
  if (recipe.clock.empty() && text.chat_template && text.chat_template->reads_variable("strftime_now"))
    recipe.clock = iso_time_text(*text.render.clock_unix_seconds);
  ASSIGN_OR_RETURN(const ColumnNames columns, column_names(recipe.columns));
  ASSIGN_OR_RETURN(Dataset data, Dataset::open(recipe.data, columns));
  std::optional<Dataset> eval_data;
  if (!recipe.eval_data.empty()) {
    ASSIGN_OR_RETURN(eval_data, Dataset::open(recipe.eval_data, columns));
  }
  ASSIGN_OR_RETURN(AdapterSet adapter, recipe_adapter(recipe, model, device.facts()));
  ASSIGN_OR_RETURN(TrainPlan plan, plan_training(recipe, model, adapter.modules, device));
  RETURN_IF_ERROR(check_fits(plan, recipe, model, adapter.modules, device));
  std::unique_ptr<TrainJob> job(new TrainJob{std::move(recipe), std::move(model), std::move(text),
                                             std::move(data), std::move(eval_data), std::move(adapter),
                                             std::move(plan)});
  ThreadPool threads(row_threads(*job));
  ASSIGN_OR_RETURN(job->report,
                   report_dataset(job->data, stream_settings(*job, DataPart::train), kReportRows, &threads));
  RETURN_IF_ERROR(check_eval_rows(*job, threads));
  ASSIGN_OR_RETURN(job->total_steps, count_steps(*job));
  return job;
}

Status check_rows_ahead(const TrainJob& job, const RowProgress& progress) {
  ThreadPool threads(row_threads(job));
  const int64_t slots = needed_slots(job);
  // The sample was the beginning of the order, unless sources are mixed by weight.
  const bool is_read = job.report.scanned_rows == job.report.part_rows ||
                       (!job.data.mixture().weighted() && slots <= job.report.scanned_rows);
  if (!is_read) {
    RETURN_IF_ERROR(
        read_rows_ahead(job.data, stream_settings(job, DataPart::train), slots, threads,
                        [&](int64_t done, int64_t total) { progress("training rows", done, total); }));
  }
  const std::optional<EvalRows> rows = eval_rows(job);
  if (!rows || rows->dataset.rows() <= kReportRows) return {};
  return read_rows_ahead(rows->dataset, rows->settings, rows->dataset.rows(), threads,
                         [&](int64_t done, int64_t total) { progress("evaluation rows", done, total); });
}

}  // namespace tenon
