#include "run/train/train_in_folder.h"

#include <string>
#include <utility>

#include "run/report/report_page.h"
#include "run/report/run_facts.h"
#include "run/report/samples.h"

namespace tenon {
namespace {

class FolderRun {
 public:
  FolderRun(TrainJob& job, Device& device, RunFolder& folder, const TrainObserver& display)
      : job_(job), device_(device), folder_(folder), display_(display) {}

  Result<TrainResult> run();

 private:
  TrainObserver observer();
  Status note(const RecordNote& note);
  Status write_first_facts();
  Status answer(const AdapterSet& adapter, std::string Sample::*field);

  TrainJob& job_;
  Device& device_;
  RunFolder& folder_;
  const TrainObserver& display_;
  RunFacts facts_;
  std::vector<Sample> samples_;
};

Status FolderRun::note(const RecordNote& note) {
  if (display_.note) RETURN_IF_ERROR(display_.note(note));
  return folder_.note(note);
}

// Samples that do not fit the memory are left out, and that is said.
Status FolderRun::answer(const AdapterSet& adapter, std::string Sample::*field) {
  Status status = answer_samples(job_, device_, adapter, field, samples_);
  if (status.ok() || status.error().code != ErrorCode::over_budget) return status;
  samples_.clear();
  return note({0, "samples", status.error().message, "warn"});
}

Status FolderRun::write_first_facts() {
  facts_ = read_facts(folder_.path());  // of a resumed run
  facts_.memory = memory_facts(job_.plan.plan);
  facts_.data = data_facts(job_.report);
  if (job_.recipe.samples > 0) {
    ASSIGN_OR_RETURN(samples_, sample_prompts(job_, job_.recipe.samples));
    const std::vector<Sample> known = parse_samples(facts_.samples);
    if (known.size() == samples_.size()) {
      for (size_t i = 0; i < known.size(); ++i) samples_[i].before = known[i].before;
    } else {
      RETURN_IF_ERROR(answer(job_.adapter, &Sample::before));
    }
    facts_.samples = sample_facts(samples_);
  }
  return write_facts(folder_.path(), facts_);
}

TrainObserver FolderRun::observer() {
  TrainObserver observer = display_;
  observer.step = [this](const StepReport& report) -> Status {
    if (display_.step) RETURN_IF_ERROR(display_.step(report));
    return folder_.step(report);
  };
  observer.evaluated = [this](int64_t step, const EvalResult& result) -> Status {
    if (display_.evaluated) RETURN_IF_ERROR(display_.evaluated(step, result));
    return folder_.evaluated(step, result);
  };
  observer.note = [this](const RecordNote& each) { return note(each); };
  observer.save = [this](const TrainProgress& progress, Session& session) {
    return folder_.save(progress, session);
  };
  observer.went_back = [this](int64_t step, const std::string& file) {
    return folder_.went_back(step, file);
  };
  observer.timed = [this](const std::vector<KernelSeconds>& kernels) {
    facts_.kernels = kernel_facts(kernels);
    return write_facts(folder_.path(), facts_);
  };
  return observer;
}

Result<TrainResult> FolderRun::run() {
  for (const RecordNote& each : folder_.notes()) RETURN_IF_ERROR(note(each));
  RETURN_IF_ERROR(write_first_facts());
  ASSIGN_OR_RETURN(TrainResult result, run_training(job_, device_, observer()));
  if (!result.stopped && !samples_.empty()) {
    RETURN_IF_ERROR(answer(result.adapter, &Sample::after));
    facts_.samples = sample_facts(samples_);
    RETURN_IF_ERROR(write_facts(folder_.path(), facts_));
  }
  RETURN_IF_ERROR(folder_.finished(result));
  RETURN_IF_ERROR(write_run_report(folder_.path()));
  return result;
}

}  // namespace

Result<TrainResult> train_in_folder(TrainJob& job, Device& device, RunFolder& folder,
                                    const TrainObserver& display) {
  Result<TrainResult> result = FolderRun(job, device, folder, display).run();
  if (result.ok()) return result;
  Error error = folder.failed(std::move(result).error());
  // A report of a failed run is welcome, but where the disk is what failed, the first error says more.
  (void)write_run_report(folder.path());
  return error;
}

}  // namespace tenon
