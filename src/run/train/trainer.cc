#include "run/train/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "run/train/schedule.h"
#include "run/train/stream_settings.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A model that knows nothing predicts every token alike: ln(vocab). One far above was loaded or rendered
// wrongly.
constexpr double kFirstLossSlack = 3.0;

class Trainer {
 public:
  Trainer(TrainJob& job, Session& session, DataStream& stream, const TrainObserver& observer)
      : job_(job), session_(session), stream_(stream), observer_(observer) {}

  Result<TrainResult> run();

 private:
  Result<StepReport> step(int64_t number);
  Status read_batches(StepReport& report);
  Status micro_step(const MicroBatch& batch, int64_t index, double& loss_sum);
  Status check_first(const StepReport& report) const;
  Status not_finite(const StepReport& report);
  Status evaluate_at(int64_t step, TrainResult& result);
  AdapterSet trained_adapter() const;

  TrainJob& job_;
  Session& session_;
  DataStream& stream_;
  const TrainObserver& observer_;
  std::vector<MicroBatch> batches_;  // of the current optimiser step
  int64_t micro_steps_ = 0;          // before the current optimiser step
};

std::string rows_text(const std::vector<MicroBatch>& batches) {
  std::string out;
  size_t count = 0;
  for (const MicroBatch& batch : batches) {
    for (const PackedRow& row : batch.rows) {
      if (++count <= 8) out += fmt::format("{}{}", out.empty() ? "" : ", ", row.row + 1);
    }
  }
  if (count > 8) out += fmt::format(" and {} more", count - 8);
  return out;
}

Status Trainer::read_batches(StepReport& report) {
  batches_.clear();
  for (int64_t i = 0; i < job_.recipe.accumulate; ++i) {
    ASSIGN_OR_RETURN(MicroBatch batch, stream_.next());
    report.trained_tokens += batch.trained_tokens;
    report.used_tokens += batch.used_tokens;
    batches_.push_back(std::move(batch));
  }
  return {};
}

Status Trainer::micro_step(const MicroBatch& batch, int64_t index, double& loss_sum) {
  write_batch(session_, batch);
  if (job_.recipe.dropout > 0) {
    const int32_t seed[2] = {static_cast<int32_t>(job_.recipe.seed),
                             static_cast<int32_t>(micro_steps_ + index)};
    session_.write(kDropoutSeedInput, std::span(seed));
  }
  RETURN_IF_ERROR(session_.run(kTrainStep));
  for (float loss : session_.output_f32(kTrainStep, kLossOutput)) loss_sum += loss;
  return {};
}

Result<StepReport> Trainer::step(int64_t number) {
  const TrainRecipe& recipe = job_.recipe;
  StepReport report;
  report.step = number;
  report.total_steps = job_.total_steps;
  const Clock::time_point begin = Clock::now();
  RETURN_IF_ERROR(read_batches(report));
  report.data_seconds = seconds_since(begin);
  const float seed = 1.0f / static_cast<float>(report.trained_tokens);
  session_.write(kLossSeedInput, std::span(&seed, 1));
  double loss_sum = 0;
  for (size_t i = 0; i < batches_.size(); ++i) {
    RETURN_IF_ERROR(micro_step(batches_[i], static_cast<int64_t>(i), loss_sum));
  }
  report.loss = loss_sum / static_cast<double>(report.trained_tokens);
  report.compute_seconds = seconds_since(begin) - report.data_seconds;
  report.learning_rate = learning_rate(lr_schedule_from_name(recipe.schedule), recipe.lr, number,
                                       job_.total_steps, recipe.warmup_steps);
  session_.write(kHyperInput, optimiser_hyper(report.learning_rate, number, job_.plan.adamw));
  RETURN_IF_ERROR(session_.run(kOptimiserStep));
  report.gradient_norm = session_.output_f32(kOptimiserStep, kGradientNormOutput)[0];
  const double seconds = seconds_since(begin);
  report.optimiser_seconds = seconds - report.data_seconds - report.compute_seconds;
  report.tokens_per_second = static_cast<double>(report.used_tokens) / seconds;
  if (!std::isfinite(report.loss) || !std::isfinite(report.gradient_norm))
    RETURN_IF_ERROR(not_finite(report));
  if (number == 1) RETURN_IF_ERROR(check_first(report));
  micro_steps_ += static_cast<int64_t>(batches_.size());
  return report;
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
        "no gradient reaches the adapter", job_.recipe.data,
        "Every gradient of the first step is zero; check the targets and what is trained on.");
  }
  return {};
}

// The sums were cleared by the optimiser step; running the micro-steps again fills them again.
Status Trainer::not_finite(const StepReport& report) {
  std::string tensor = "the loss";
  if (std::isfinite(report.loss)) {
    double ignored = 0;
    for (size_t i = 0; i < batches_.size(); ++i) {
      RETURN_IF_ERROR(micro_step(batches_[i], static_cast<int64_t>(i), ignored));
    }
    for (const TrainedValue& value : job_.plan.trained) {
      const std::vector<float> sum = session_.read_state(gradient_sum_name(value.name));
      bool finite = true;
      for (float x : sum) finite = finite && std::isfinite(x);
      if (!finite) {
        tensor = "the gradient of " + value.name;
        break;
      }
    }
  }
  return device_error(fmt::format("{} is not finite", tensor),
                      fmt::format("step {}, rows {}", report.step, rows_text(batches_)),
                      "Lower --lr, set --clip, or look at those rows.");
}

Status Trainer::evaluate_at(int64_t step, TrainResult& result) {
  const bool has_part = job_.recipe.eval_fraction > 0;
  if (!has_part && !job_.eval_data) return {};
  StreamSettings settings = stream_settings(job_, has_part ? DataPart::eval : DataPart::all);
  if (job_.eval_data) settings.part = DataPart::all;
  const Dataset& dataset = job_.eval_data ? *job_.eval_data : job_.data;
  ASSIGN_OR_RETURN(result.eval, evaluate(session_, dataset, settings));
  return observer_.evaluated ? observer_.evaluated(step, *result.eval) : Status();
}

AdapterSet Trainer::trained_adapter() const {
  AdapterSet set = job_.adapter;
  for (auto& [name, values] : set.values) values = session_.read_state(name);
  return set;
}

Result<TrainResult> Trainer::run() {
  TrainResult result;
  const Clock::time_point begin = Clock::now();
  const int64_t every = job_.recipe.eval_every;
  for (int64_t number = 1; number <= job_.total_steps && !result.stopped; ++number) {
    ASSIGN_OR_RETURN(const StepReport report, step(number));
    if (number == 1) result.first_loss = report.loss;
    result.last_loss = report.loss;
    result.steps = number;
    if (observer_.step) RETURN_IF_ERROR(observer_.step(report));
    if (every > 0 && number % every == 0 && number < job_.total_steps)
      RETURN_IF_ERROR(evaluate_at(number, result));
    result.stopped = observer_.should_stop && observer_.should_stop();
  }
  RETURN_IF_ERROR(evaluate_at(result.steps, result));
  result.seconds = seconds_since(begin);
  result.planned_bytes = session_.plan().arena_bytes();
  result.allocated_bytes = session_.executor().allocated_bytes();
  result.allocations_in_steps = session_.executor().allocations_in_runs();
  result.adapter = trained_adapter();
  return result;
}

}  // namespace

Result<TrainResult> run_training(TrainJob& job, Device& device, const TrainObserver& observer) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                   Session::open(std::move(job.plan.plan), job.model, &job.adapter, device));
  if (observer.loaded) observer.loaded(job, session->plan());
  ASSIGN_OR_RETURN(DataStream stream, DataStream::open(job.data, stream_settings(job, DataPart::train)));
  return Trainer(job, *session, stream, observer).run();
}

}  // namespace tenon
