#include "run/train/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "run/checkpoint_interval.h"
#include "run/train/health.h"
#include "run/train/schedule.h"
#include "run/train/stream_settings.h"
#include "run/train/train_step.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A model that knows nothing predicts every token alike: ln(vocab). One far above was loaded or rendered
// wrongly.
constexpr double kFirstLossSlack = 3.0;
// Steps thrown away or taken back in a row before a run gives up.
constexpr int64_t kMostSetbacks = 8;

enum class Decision { take, skip, went_back };

// Why a step should not count.
struct Alarm {
  HealthFinding finding;
  std::string not_finite;  // what is not: "the loss", "the gradient of X"; empty where the loss jumped
};

class Trainer {
 public:
  Trainer(TrainJob& job, Session& session, DataStream& stream, const TrainObserver& observer)
      : job_(job), session_(session), stream_(stream), observer_(observer), step_(job, session, stream) {}

  Status resume();
  Result<TrainResult> run();

 private:
  // Nothing where the run went back to a checkpoint instead.
  Result<std::optional<StepReport>> step();
  Status finish_step(StepReport& report, Clock::time_point begin);
  Status look_at_layers(int64_t step);
  Status check_first(const StepReport& report) const;
  Alarm not_finite(std::string what) const;
  Status note(int64_t step, HealthFinding finding, std::string action);

  // What the loss says before the adapter is touched: nothing, or why the step must not be taken.
  std::optional<Alarm> alarm(const StepReport& report) const;
  Result<Decision> act(const Alarm& alarm, StepReport& report);
  Error stopped_by(const Alarm& alarm, const StepReport& report) const;
  // The optimiser's step, unless a gradient is not finite: that changes no weight.
  Result<Decision> optimise(StepReport& report);
  Status go_back();

  Status after_step(const StepReport& report, TrainResult& result);
  Status evaluate_now(TrainResult& result);
  Status save();
  bool save_is_due() const;
  bool out_of_patience() const;
  AdapterSet trained_adapter() const;

  TrainJob& job_;
  Session& session_;
  DataStream& stream_;
  const TrainObserver& observer_;
  TrainStep step_;
  TrainProgress progress_;
  LayerHealth layers_;
  CheckpointInterval interval_;
  std::optional<TrainProgress> saved_;  // what the newest checkpoint holds
  // The newest checkpoint at a step that --checkpoint-every asks for. Others (of a stop, of the best state)
  // are not gone back to, so that a run that was interrupted goes back to where the others do.
  std::string rollback_file_;
  bool improved_ = false;  // by the evaluation after the last step
  Clock::time_point saved_at_ = Clock::now();
  int64_t steps_here_ = 0;  // by this process
  std::vector<KernelSeconds> kernels_;
};

Status Trainer::resume() {
  ASSIGN_OR_RETURN(interval_, parse_checkpoint_interval(job_.recipe.checkpoint_every));
  if (job_.resume_from.empty()) return {};
  ASSIGN_OR_RETURN(const SavedState state, read_state(job_.resume_from));
  RETURN_IF_ERROR(restore_state(job_.resume_from, session_, job_.plan.trained));
  RETURN_IF_ERROR(stream_.seek(state.progress.data));
  progress_ = state.progress;
  rollback_file_ = job_.rollback_to;
  saved_ = progress_;
  return {};
}

Status Trainer::note(int64_t step, HealthFinding finding, std::string action) {
  if (!observer_.note) return {};
  return observer_.note({step, std::move(finding.kind), std::move(finding.message), std::move(action)});
}

Alarm Trainer::not_finite(std::string what) const {
  return {{"not_finite", fmt::format("{} is not finite on rows {}; look at those rows, or lower --lr", what,
                                     step_.rows_text())},
          what};
}

std::optional<Alarm> Trainer::alarm(const StepReport& report) const {
  if (!std::isfinite(report.loss)) return not_finite("the loss");
  const std::optional<double> score = loss_spike(progress_.losses, report.loss);
  if (!score) return std::nullopt;
  return Alarm{{"loss_spike",
                fmt::format("the loss jumped to {:.4g}, {:.0f} deviations above the recent ones, on rows "
                            "{}; look at those rows, or lower --lr",
                            report.loss, *score, step_.rows_text())},
               {}};
}

Error Trainer::stopped_by(const Alarm& alarm, const StepReport& report) const {
  if (alarm.not_finite.empty()) {
    return device_error(alarm.finding.message, fmt::format("step {}", report.step),
                        "The state before this step is saved; --resume with --on-spike skip leaves it out.");
  }
  return device_error(fmt::format("{} is not finite", alarm.not_finite),
                      fmt::format("step {}, rows {}", report.step, step_.rows_text()),
                      "Lower --lr, set --clip, or look at those rows.");
}

Result<Decision> Trainer::act(const Alarm& alarm, StepReport& report) {
  const std::string& action = job_.recipe.on_spike;
  if (action == "stop" || (action == "warn" && !alarm.not_finite.empty())) {
    step_.discard(report);
    RETURN_IF_ERROR(note(report.step, alarm.finding, "stop"));
    RETURN_IF_ERROR(save());
    return stopped_by(alarm, report);
  }
  if (action == "warn") {
    RETURN_IF_ERROR(note(report.step, alarm.finding, action));
    return Decision::take;
  }
  step_.discard(report);
  if (++progress_.setbacks > kMostSetbacks) {
    return device_error(fmt::format("{} steps in a row were thrown away", progress_.setbacks),
                        fmt::format("step {}, rows {}", report.step, step_.rows_text()),
                        "Lower --lr, or look at those rows.");
  }
  const bool back = action == "rollback" && !rollback_file_.empty();
  if (back) RETURN_IF_ERROR(go_back());
  RETURN_IF_ERROR(note(report.step, alarm.finding, back ? "rollback" : "skip"));
  return back ? Decision::went_back : Decision::skip;
}

Result<Decision> Trainer::optimise(StepReport& report) {
  RETURN_IF_ERROR(look_at_layers(report.step));
  RETURN_IF_ERROR(step_.optimise(report));
  if (std::isfinite(report.gradient_norm)) return Decision::take;
  ASSIGN_OR_RETURN(std::string what, step_.name_not_finite(progress_.micro_steps));
  return act(not_finite(std::move(what)), report);
}

// The tensors are those of the checkpoint again; the data goes on after the rows that raised the alarm.
Status Trainer::go_back() {
  ASSIGN_OR_RETURN(const SavedState state, read_state(rollback_file_));
  RETURN_IF_ERROR(restore_state(rollback_file_, session_, job_.plan.trained));
  const int64_t setbacks = progress_.setbacks;
  progress_ = state.progress;
  progress_.setbacks = setbacks;
  progress_.data = stream_.state();
  return observer_.went_back ? observer_.went_back(progress_.step, rollback_file_) : Status();
}

Status Trainer::look_at_layers(int64_t step) {
  if (!observer_.note || step % LayerHealth::kEvery != 0) return {};
  for (HealthFinding& finding : layers_.observe(step_.layer_norms()))
    RETURN_IF_ERROR(note(step, std::move(finding), "warn"));
  return {};
}

Result<std::optional<StepReport>> Trainer::step() {
  StepReport report;
  report.step = progress_.step + 1;
  report.total_steps = job_.total_steps;
  const Clock::time_point begin = Clock::now();
  // The first step warms caches up, so the second is measured.
  const bool measure = observer_.timed && ++steps_here_ == 2;
  if (measure) step_.time_next(&kernels_);
  RETURN_IF_ERROR(step_.read(report));
  RETURN_IF_ERROR(step_.forward_backward(report, progress_.micro_steps));
  report.learning_rate = learning_rate(lr_schedule_from_name(job_.recipe.schedule), job_.recipe.lr,
                                       report.step, job_.total_steps, job_.recipe.warmup_steps);
  Decision decision = Decision::take;
  if (const std::optional<Alarm> loss_alarm = alarm(report)) {
    ASSIGN_OR_RETURN(decision, act(*loss_alarm, report));
  }
  if (decision == Decision::take) {
    ASSIGN_OR_RETURN(decision, optimise(report));
  }
  if (decision == Decision::went_back) return std::optional<StepReport>();
  RETURN_IF_ERROR(finish_step(report, begin));
  if (measure) RETURN_IF_ERROR(observer_.timed(kernels_));
  return std::optional(report);
}

Status Trainer::finish_step(StepReport& report, Clock::time_point begin) {
  report.tokens_per_second = static_cast<double>(report.used_tokens) / seconds_since(begin);
  if (report.step == 1 && !report.skipped) {
    RETURN_IF_ERROR(check_first(report));
    progress_.first_loss = report.loss;
  }
  progress_.step = report.step;
  progress_.micro_steps += job_.recipe.accumulate;
  progress_.data = stream_.state();
  if (report.skipped) return {};
  progress_.last_loss = report.loss;
  progress_.losses.add(report.loss);
  if (job_.recipe.on_spike == "skip") progress_.setbacks = 0;
  return {};
}

Status Trainer::check_first(const StepReport& report) const {
  const double uniform = std::log(static_cast<double>(job_.model.spec.vocab));
  if (report.loss > uniform + kFirstLossSlack) {
    return bad_argument(
        fmt::format("the first loss is {:.2f}, but a model that knows nothing has {:.2f}", report.loss,
                    uniform),
        job_.recipe.model,
        "The weights, the tokenizer or the chat template do not belong together; see `tenon inspect`.");
  }
  if (report.gradient_norm == 0) {
    return bad_argument(
        "no gradient reaches the adapter", job_.data.name(),
        "Every gradient of the first step is zero; check the targets and what is trained on.");
  }
  return {};
}

Status Trainer::evaluate_now(TrainResult& result) {
  const bool has_part = job_.recipe.eval_fraction > 0;
  if (!has_part && !job_.eval_data) return {};
  StreamSettings settings = stream_settings(job_, has_part ? DataPart::eval : DataPart::all);
  if (job_.eval_data) settings.part = DataPart::all;
  const Dataset& dataset = job_.eval_data ? *job_.eval_data : job_.data;
  ASSIGN_OR_RETURN(result.eval, evaluate(session_, dataset, settings));
  progress_.evaluated_step = progress_.step;
  improved_ =
      std::isfinite(result.eval->loss) && (!progress_.best_loss || result.eval->loss < *progress_.best_loss);
  if (improved_) {
    progress_.best_loss = result.eval->loss;
    progress_.best_step = progress_.step;
  }
  progress_.evaluations_since_best = improved_ ? 0 : progress_.evaluations_since_best + 1;
  return observer_.evaluated ? observer_.evaluated(progress_.step, *result.eval) : Status();
}

bool Trainer::save_is_due() const {
  if (improved_ && job_.recipe.keep_best) return true;
  if (interval_.steps > 0) return progress_.step % interval_.steps == 0;
  return interval_.seconds > 0 && seconds_since(saved_at_) >= interval_.seconds;
}

Status Trainer::save() {
  if (job_.recipe.on_spike == "rollback") progress_.setbacks = 0;
  if (!observer_.save || saved_ == progress_) return {};
  ASSIGN_OR_RETURN(const std::string file, observer_.save(progress_, session_));
  if (interval_.steps > 0 && progress_.step % interval_.steps == 0) rollback_file_ = file;
  saved_ = progress_;
  saved_at_ = Clock::now();
  return {};
}

bool Trainer::out_of_patience() const {
  return job_.recipe.early_stop > 0 && progress_.evaluations_since_best >= job_.recipe.early_stop;
}

AdapterSet Trainer::trained_adapter() const {
  AdapterSet set = job_.adapter;
  for (auto& [name, values] : set.values) values = session_.read_state(name);
  return set;
}

Status Trainer::after_step(const StepReport& report, TrainResult& result) {
  if (observer_.step) RETURN_IF_ERROR(observer_.step(report));
  if (const auto finding = loss_not_falling(progress_.losses, report.step))
    RETURN_IF_ERROR(note(report.step, *finding, "warn"));
  improved_ = false;
  const int64_t every = job_.recipe.eval_every;
  if (report.step == job_.total_steps || (every > 0 && report.step % every == 0))
    RETURN_IF_ERROR(evaluate_now(result));
  result.stopped = observer_.should_stop && observer_.should_stop();
  return save_is_due() || result.stopped ? save() : Status();
}

Result<TrainResult> Trainer::run() {
  TrainResult result;
  const Clock::time_point begin = Clock::now();
  if (progress_.step == 0) {
    for (HealthFinding& finding : implausible_settings(job_.recipe, job_.adapter.modules))
      RETURN_IF_ERROR(note(0, std::move(finding), "warn"));
  }
  while (progress_.step < job_.total_steps && !result.stopped && !out_of_patience()) {
    ASSIGN_OR_RETURN(const std::optional<StepReport> report, step());
    if (report) RETURN_IF_ERROR(after_step(*report, result));
  }
  result.ended_early = !result.stopped && progress_.step < job_.total_steps;
  if (!result.stopped && progress_.evaluated_step != progress_.step) RETURN_IF_ERROR(evaluate_now(result));
  RETURN_IF_ERROR(save());
  result.steps = progress_.step;
  result.first_loss = progress_.first_loss;
  result.last_loss = progress_.last_loss;
  result.best_step = progress_.best_step;
  result.seconds = seconds_since(begin);
  result.planned_bytes = session_.plan().arena_bytes();
  result.allocated_bytes = session_.executor().allocated_bytes();
  result.allocations_in_steps = session_.executor().allocations_in_runs();
  result.adapter = trained_adapter();
  RETURN_IF_ERROR(session_.status());
  return result;
}

}  // namespace

Result<TrainResult> run_training(TrainJob& job, Device& device, const TrainObserver& observer) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                   Session::open(std::move(job.plan.plan), job.model, &job.adapter, device));
  if (observer.loaded) observer.loaded(job, session->plan());
  ASSIGN_OR_RETURN(DataStream stream, DataStream::open(job.data, stream_settings(job, DataPart::train)));
  Trainer trainer(job, *session, stream, observer);
  RETURN_IF_ERROR(trainer.resume());
  ASSIGN_OR_RETURN(TrainResult result, trainer.run());
  result.memory = device.memory_use();
  return result;
}

}  // namespace tenon
