#include "run/train/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/hash.h"
#include "base/process_memory.h"
#include "io/digest.h"
#include "io/folder.h"
#include "io/write_file.h"
#include "plan/fit.h"

namespace tenon {
namespace {

constexpr const char* kRecipeFile = "recipe.yaml";
constexpr const char* kRecordFile = "record.jsonl";
constexpr const char* kAdapterFolder = "adapter";
constexpr const char* kAdapterFiles[] = {"adapter_config.json", "adapter_model.safetensors"};

// What decided the run: every weight file and the data.
Result<std::map<std::string, std::string>> digests(const TrainJob& job) {
  std::map<std::string, std::string> out;
  for (const std::string& file : job.model.checkpoint.files()) {
    ASSIGN_OR_RETURN(out["model " + file.substr(file.rfind('/') + 1)], file_digest(file));
  }
  ASSIGN_OR_RETURN(out["data"], file_digest(job.recipe.data));
  if (!job.recipe.eval_data.empty()) {
    ASSIGN_OR_RETURN(out["eval-data"], file_digest(job.recipe.eval_data));
  }
  return out;
}

Result<RecordHeader> header_of(const TrainJob& job) {
  const Plan& plan = job.plan.plan;
  RecordHeader header;
  header.kind = "train";
  header.build = fmt::format("tenon {}", TENON_VERSION);
  header.device = plan.facts.name;
  header.features = plan.facts.features;
  header.threads = plan.facts.threads;
  ASSIGN_OR_RETURN(header.digests, digests(job));
  header.seed = static_cast<uint64_t>(job.recipe.seed);
  header.recipe = recipe_yaml(job.recipe);
  header.plan_hash = hash_text(plan_hash(plan));
  header.planned_bytes = plan.arena_bytes();
  header.mapped_bytes = plan.external_bytes;
  header.started_unix_seconds = static_cast<int64_t>(std::time(nullptr));
  return header;
}

Status remove_old_run(const std::string& path) {
  for (const char* name : kAdapterFiles) {
    RETURN_IF_ERROR(remove_file(join_path(join_path(path, kAdapterFolder), name)));
  }
  RETURN_IF_ERROR(remove_file(join_path(path, kRecordFile)));
  return remove_file(join_path(path, kRecipeFile));
}

}  // namespace

Status check_run_folder(const std::string& path, bool overwrite) {
  if (is_file(path)) return bad_argument("it is a file", path, "Name a folder with --out.");
  if (!is_folder(path) || overwrite) return {};
  ASSIGN_OR_RETURN(const std::vector<std::string> names, list_folder(path));
  if (names.empty()) return {};
  return bad_argument("the run folder exists and is not empty", path,
                      "Name another with --out, or add --overwrite.");
}

Result<RunFolder> RunFolder::create(const TrainJob& job) {
  const std::string& path = job.recipe.out;
  ASSIGN_OR_RETURN(const RecordHeader header, header_of(job));
  RETURN_IF_ERROR(make_folders(path));
  ASSIGN_OR_RETURN(FolderLock lock, FolderLock::acquire(path));
  RETURN_IF_ERROR(remove_old_run(path));
  RETURN_IF_ERROR(write_file_atomic(join_path(path, kRecipeFile), recipe_yaml(job.recipe)));
  ASSIGN_OR_RETURN(RecordWriter record,
                   RecordWriter::create(join_path(path, kRecordFile), RecordSync::ends_only));
  RETURN_IF_ERROR(record.write(header));
  return RunFolder(path, job.recipe.model, job.recipe.clip, std::move(lock), std::move(record));
}

RunFolder::RunFolder(std::string path, std::string base_model, double clip, FolderLock lock,
                     RecordWriter record)
    : path_(std::move(path)),
      base_model_(std::move(base_model)),
      clip_(clip),
      lock_(std::move(lock)),
      record_(std::move(record)) {}

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
  return record_.write(step);
}

Status RunFolder::evaluated(int64_t step, const EvalResult& result) {
  RecordEval eval;
  eval.step = step;
  eval.loss = result.loss;
  eval.tokens = result.trained_tokens;
  eval.metrics = {{"perplexity", result.perplexity()}, {"token_accuracy", result.token_accuracy}};
  return record_.write(eval);
}

Status RunFolder::finished(const TrainResult& result) {
  RETURN_IF_ERROR(write_adapter(join_path(path_, kAdapterFolder), result.adapter, base_model_));
  RecordEnd end;
  end.status = result.stopped ? "cancelled" : "finished";
  end.allocated_bytes = result.allocated_bytes;
  end.observed_peak_bytes = process_memory().peak_resident_bytes;
  end.allocations_in_steps = result.allocations_in_steps;
  RETURN_IF_ERROR(record_.write(end));
  return record_.close();
}

Status RunFolder::failed(const Error& error) {
  RecordEnd end;
  end.status = "failed";
  end.observed_peak_bytes = process_memory().peak_resident_bytes;
  end.error = error.text();
  RETURN_IF_ERROR(record_.write(end));
  return record_.close();
}

}  // namespace tenon
