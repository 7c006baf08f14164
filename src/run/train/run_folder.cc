#include "run/train/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/hash.h"
#include "base/process_memory.h"
#include "io/partial_name.h"
#include "io/write_file.h"
#include "run/checkpoint_interval.h"
#include "run/session.h"
#include "run/train/run_paths.h"

namespace tenon {
namespace {

constexpr const char* kAdapterFiles[] = {"adapter_config.json", "adapter_model.safetensors"};

int64_t now_unix_seconds() {
  return static_cast<int64_t>(std::time(nullptr));
}

std::string build_text() {
  return fmt::format("tenon {}", TENON_VERSION);
}

RecordHeader header_of(const TrainJob& job, std::map<std::string, std::string> digests) {
  const Plan& plan = job.plan.plan;
  RecordHeader header;
  header.kind = "train";
  header.build = build_text();
  header.device = plan.facts.name;
  header.features = plan.facts.features;
  header.threads = plan.facts.threads;
  header.digests = std::move(digests);
  header.seed = static_cast<uint64_t>(job.recipe.seed);
  header.recipe = recipe_yaml(job.recipe);
  header.plan_hash = hash_text(plan_hash(plan));
  header.attention = attention_kernels(plan);
  header.planned_bytes = plan.arena_bytes();
  header.mapped_bytes = plan.external_bytes;
  header.started_unix_seconds = now_unix_seconds();
  return header;
}

Status remove_event_files(const std::string& run) {
  const std::string folder = run_event_folder(run);
  if (!is_folder(folder)) return {};
  ASSIGN_OR_RETURN(const std::vector<std::string> names, list_folder(folder));
  for (const std::string& name : names) {
    if (name.starts_with(kEventFilePrefix)) RETURN_IF_ERROR(remove_file(join_path(folder, name)));
  }
  return {};
}

// The recipe goes first: without it the folder holds no run that could be resumed by mistake.
Status remove_old_run(const std::string& run) {
  RETURN_IF_ERROR(remove_file(run_recipe_path(run)));
  RETURN_IF_ERROR(remove_file(run_record_path(run)));
  RETURN_IF_ERROR(remove_file(run_report_path(run)));
  RETURN_IF_ERROR(remove_file(run_facts_path(run)));
  RETURN_IF_ERROR(remove_event_files(run));
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, checkpoint_steps(run));
  for (const int64_t step : steps) RETURN_IF_ERROR(remove_file(checkpoint_path(run, step)));
  for (const std::string& folder : {run_adapter_folder(run), run_best_folder(run)}) {
    for (const char* name : kAdapterFiles) RETURN_IF_ERROR(remove_file(join_path(folder, name)));
  }
  return {};
}

Status remove_partial_files_of_run(const std::string& run) {
  for (const std::string& folder :
       {run, run_checkpoint_folder(run), run_adapter_folder(run), run_best_folder(run)}) {
    if (is_folder(folder)) RETURN_IF_ERROR(remove_partial_files(folder));
  }
  return {};
}

// What another program or processor computes may differ in the last bits.
std::vector<RecordNote> changed_machine(const RunRecord& record, const TrainJob& job) {
  std::vector<RecordNote> notes;
  const auto compare = [&](const char* kind, const std::string& was, const std::string& is) {
    if (was == is) return;
    notes.push_back(
        {0, kind,
         fmt::format("the run was begun by '{}' and goes on with '{}'; the same bits as without an "
                     "interruption are not promised",
                     was, is),
         "warn"});
  };
  compare("build", record.header.build, build_text());
  compare("device", record.header.device, job.plan.plan.facts.name);
  return notes;
}

// The newest step that is a multiple of `every`; -1 where there is none.
int64_t newest_multiple(const std::vector<int64_t>& steps, int64_t every) {
  int64_t newest = -1;
  for (const int64_t step : steps) {
    if (every > 0 && step % every == 0) newest = step;
  }
  return newest;
}

// What is left when a run was killed before it said what it is.
bool is_leftover(std::string_view name) {
  return name == ".tenon.lock" || is_partial_name(name);
}

bool is_refusal(ErrorCode code) {
  return code == ErrorCode::bad_argument || code == ErrorCode::bad_file || code == ErrorCode::not_found ||
         code == ErrorCode::unsupported || code == ErrorCode::over_budget;
}

int64_t rollback_interval(const TrainRecipe& recipe) {
  const auto interval = parse_checkpoint_interval(recipe.checkpoint_every);
  return recipe.on_spike == "rollback" && interval.ok() ? interval->steps : 0;
}

}  // namespace

Status check_run_folder(const std::string& path, bool overwrite) {
  if (is_file(path)) return bad_argument("it is a file", path, "Name a folder with --out.");
  if (!is_folder(path) || overwrite) return {};
  ASSIGN_OR_RETURN(const std::vector<std::string> names, list_folder(path));
  if (std::ranges::all_of(names, is_leftover)) return {};
  return bad_argument(
      "the run folder exists and is not empty", path,
      "Go on with its run with --resume, replace it with --overwrite, or name another with --out.");
}

RunFolder::RunFolder(const TrainJob& job, FolderLock lock, RecordWriter record)
    : path_(job.recipe.out),
      base_model_(job.recipe.model),
      trained_(job.plan.trained),
      clip_(job.recipe.clip),
      keep_(job.recipe.keep),
      keep_best_(job.recipe.keep_best),
      tensorboard_(job.recipe.tensorboard),
      rollback_every_(rollback_interval(job.recipe)),
      lock_(std::move(lock)),
      record_(std::move(record)) {}

Result<RunFolder> RunFolder::create(const TrainJob& job) {
  const std::string& path = job.recipe.out;
  ASSIGN_OR_RETURN(auto digests, run_digests(job));
  RETURN_IF_ERROR(make_folders(path));
  ASSIGN_OR_RETURN(FolderLock lock, FolderLock::acquire(path));
  RETURN_IF_ERROR(remove_partial_files_of_run(path));
  RETURN_IF_ERROR(remove_old_run(path));
  const RecordHeader header = header_of(job, std::move(digests));
  RETURN_IF_ERROR(write_file_atomic(run_recipe_path(path), header.recipe));
  ASSIGN_OR_RETURN(RecordWriter record, RecordWriter::create(run_record_path(path), RecordSync::ends_only));
  RETURN_IF_ERROR(record.write(header));
  return RunFolder(job, std::move(lock), std::move(record));
}

Result<RunFolder> RunFolder::resume(TrainJob& job) {
  const std::string& path = job.recipe.out;
  ASSIGN_OR_RETURN(const auto digests, run_digests(job));
  ASSIGN_OR_RETURN(FolderLock lock, FolderLock::acquire(path));
  ASSIGN_OR_RETURN(const ResumePoint point, find_resume_point(path));
  RETURN_IF_ERROR(check_same_run(point, job, digests));
  RETURN_IF_ERROR(remove_partial_files_of_run(path));
  const std::string recipe = recipe_yaml(job.recipe);
  const std::string record_path = run_record_path(path);
  if (!point.record) {
    RETURN_IF_ERROR(remove_file(record_path));
    ASSIGN_OR_RETURN(RecordWriter record, RecordWriter::create(record_path, RecordSync::ends_only));
    RETURN_IF_ERROR(record.write(header_of(job, digests)));
    RETURN_IF_ERROR(write_file_atomic(run_recipe_path(path), recipe));
    return RunFolder(job, std::move(lock), std::move(record));
  }
  job.resume_from = point.checkpoint;
  ASSIGN_OR_RETURN(const CheckpointInterval interval, parse_checkpoint_interval(job.recipe.checkpoint_every));
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, checkpoint_steps(path));
  const int64_t rollback_step = newest_multiple(steps, interval.steps);
  if (rollback_step >= 0) job.rollback_to = checkpoint_path(path, rollback_step);
  const bool changed = !recipe_changes(point.recipe, job.recipe).empty();
  ASSIGN_OR_RETURN(RecordWriter record, RecordWriter::reopen(record_path, RecordSync::ends_only));
  RunFolder folder(job, std::move(lock), std::move(record));
  folder.begun_ = true;
  folder.resumed_step_ = point.step();
  folder.complete_ = point.ended() && !changed;
  if (folder.complete_) return folder;
  RecordResume event;
  event.step = point.step();
  if (!point.checkpoint.empty()) event.checkpoint = point.checkpoint.substr(point.checkpoint.rfind('/') + 1);
  event.reason = "resumed";
  event.build = build_text();
  event.device = job.plan.plan.facts.name;
  if (changed) event.recipe = recipe;
  event.started_unix_seconds = now_unix_seconds();
  RETURN_IF_ERROR(folder.record_.write(event));
  RETURN_IF_ERROR(write_file_atomic(run_recipe_path(path), changed ? recipe : point.record->recipe()));
  folder.notes_ = changed_machine(*point.record, job);
  return folder;
}

Status RunFolder::step(const StepReport& report) {
  RecordStep step;
  step.step = report.step;
  step.loss = report.loss;
  step.trained_tokens = report.trained_tokens;
  step.learning_rate = report.learning_rate;
  step.gradient_norm = report.gradient_norm;
  step.clipped_gradient_norm = clip_ > 0 ? std::min(clip_, report.gradient_norm) : report.gradient_norm;
  step.tokens_per_second = report.tokens_per_second;
  step.seconds = {{"data", report.data_seconds},
                  {"forward_backward", report.compute_seconds},
                  {"optimiser", report.optimiser_seconds}};
  step.resident_bytes = resident_bytes();
  step.skipped = report.skipped;
  RETURN_IF_ERROR(record_.write(step));
  begun_ = true;
  const Scalar scalars[] = {{"loss", step.loss},
                            {"learning_rate", step.learning_rate},
                            {"gradient_norm", step.gradient_norm},
                            {"tokens_per_second", step.tokens_per_second}};
  return write_events(step.step, scalars);
}

Status RunFolder::evaluated(int64_t step, const EvalResult& result) {
  RecordEval eval;
  eval.step = step;
  eval.loss = result.loss;
  eval.tokens = result.trained_tokens;
  eval.metrics = {{"perplexity", result.perplexity()}, {"token_accuracy", result.token_accuracy}};
  RETURN_IF_ERROR(record_.write(eval));
  const Scalar scalars[] = {{"eval/loss", result.loss}, {"eval/token_accuracy", result.token_accuracy}};
  return write_events(step, scalars);
}

// The file begins with the first event, so that it says from which step on it counts.
Status RunFolder::write_events(int64_t step, std::span<const Scalar> scalars) {
  if (!tensorboard_) return {};
  if (!events_) {
    RETURN_IF_ERROR(make_folders(run_event_folder(path_)));
    ASSIGN_OR_RETURN(events_, EventFile::create(run_event_folder(path_), step));
  }
  return events_->write(step, scalars);
}

Result<std::string> RunFolder::save(const TrainProgress& progress, Session& session) {
  RETURN_IF_ERROR(make_folders(run_checkpoint_folder(path_)));
  RETURN_IF_ERROR(record_.sync());
  std::string file = checkpoint_path(path_, progress.step);
  RETURN_IF_ERROR(save_state(file, {progress, record_.size_bytes()}, session, trained_));
  RETURN_IF_ERROR(remove_old_checkpoints(progress));
  return file;
}

Status RunFolder::remove_old_checkpoints(const TrainProgress& progress) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, checkpoint_steps(path_));
  const int64_t rollback_step = newest_multiple(steps, rollback_every_);
  for (size_t i = 0; i + static_cast<size_t>(keep_) < steps.size(); ++i) {
    if (steps[i] == rollback_step) continue;
    if (keep_best_ && progress.best_loss && steps[i] == progress.best_step) continue;
    RETURN_IF_ERROR(remove_file(checkpoint_path(path_, steps[i])));
  }
  return {};
}

Status RunFolder::went_back(int64_t step, const std::string& file) {
  RecordResume event;
  event.step = step;
  event.checkpoint = file.substr(file.rfind('/') + 1);
  event.reason = "rollback";
  event.started_unix_seconds = now_unix_seconds();
  return record_.write(event);
}

Status RunFolder::write_best(const TrainResult& result) {
  if (!keep_best_ || result.best_step == 0 || result.stopped) return {};
  const std::string file = checkpoint_path(path_, result.best_step);
  if (!is_file(file)) {  // kept only from a resumption on
    return note(
        {result.steps, "best",
         fmt::format("the best state, of step {}, was not kept, so best/ is not written", result.best_step),
         "warn"});
  }
  ASSIGN_OR_RETURN(const AdapterSet best, adapter_of_state(file, result.adapter));
  return write_adapter(run_best_folder(path_), best, base_model_);
}

Status RunFolder::finished(const TrainResult& result) {
  RETURN_IF_ERROR(write_best(result));
  RETURN_IF_ERROR(write_adapter(run_adapter_folder(path_), result.adapter, base_model_));
  RecordEnd end;
  end.status = result.stopped ? "cancelled" : result.ended_early ? "early_stop" : "finished";
  end.allocated_bytes = result.allocated_bytes;
  end.observed_peak_bytes = peak_resident_bytes();
  end.allocations_in_steps = result.allocations_in_steps;
  return record_.write(end);
}

// What cannot be removed stays: the error that ends the run says more than one about that.
void RunFolder::abandon() {
  (void)record_.close();
  (void)remove_old_run(path_);
  (void)FolderLock::remove(std::move(lock_), path_);
  (void)remove_empty_folder(path_);
}

Error RunFolder::failed(Error error) {
  if (!begun_ && is_refusal(error.code)) {
    abandon();
    return error;
  }
  RecordEnd end;
  end.status = "failed";
  end.observed_peak_bytes = peak_resident_bytes();
  end.error = error.text();
  const Status written = record_.write(end);  // on a full disk this fails as well; the first error counts
  if (is_refusal(error.code)) return error;
  const auto steps = checkpoint_steps(path_);
  const std::string from =
      steps.ok() && !steps->empty() ? fmt::format("step {}", steps->back()) : std::string("the start");
  if (!error.hint.empty()) error.hint += "\n  ";
  error.hint += fmt::format("Then `tenon train --resume {}` goes on from {}.", path_, from);
  return error;
}

}  // namespace tenon
