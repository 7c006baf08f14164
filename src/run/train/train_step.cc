#include "run/train/train_step.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "run/train/schedule.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double sum_of_squares(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * double{value};
  return sum;
}

}  // namespace

Status TrainStep::read(StepReport& report) {
  const Clock::time_point begin = Clock::now();
  batches_.clear();
  for (int64_t i = 0; i < job_.recipe.accumulate; ++i) {
    ASSIGN_OR_RETURN(MicroBatch batch, stream_.next());
    report.trained_tokens += batch.trained_tokens;
    report.used_tokens += batch.used_tokens;
    batches_.push_back(std::move(batch));
  }
  report.data_seconds = seconds_since(begin);
  return {};
}

Status TrainStep::run_timed(const char* program) {
  const ProgramPlan& plan = *session_.plan().find(program);
  std::vector<double> seconds(plan.steps.size());
  RETURN_IF_ERROR(session_.executor().run(program, seconds));
  std::map<std::string, KernelSeconds> kernels;
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (plan.steps[i].kernel == nullptr) continue;
    KernelSeconds& kernel = kernels[std::string(plan.steps[i].kernel->name)];
    kernel.calls += 1;
    kernel.seconds += seconds[i];
  }
  for (auto& [name, kernel] : kernels) {
    kernel.program = program;
    kernel.kernel = name;
    timing_->push_back(std::move(kernel));
  }
  return {};
}

Status TrainStep::run_micro_steps(int64_t micro_steps, double& loss_sum) {
  for (const MicroBatch& batch : batches_) {
    write_batch(session_, batch);
    if (job_.recipe.dropout > 0) {
      const int32_t seed[2] = {static_cast<int32_t>(job_.recipe.seed), static_cast<int32_t>(micro_steps)};
      session_.write(kDropoutSeedInput, std::span(seed));
    }
    ++micro_steps;
    const bool timed = timing_ != nullptr && &batch == batches_.data();
    RETURN_IF_ERROR(timed ? run_timed(kTrainStep) : session_.run(kTrainStep));
    for (const float loss : session_.output_f32(kTrainStep, kLossOutput)) loss_sum += loss;
  }
  return session_.status();
}

Status TrainStep::forward_backward(StepReport& report, int64_t micro_steps) {
  const Clock::time_point begin = Clock::now();
  const float seed = 1.0f / static_cast<float>(report.trained_tokens);
  session_.write(kLossSeedInput, std::span(&seed, 1));
  double loss_sum = 0;
  RETURN_IF_ERROR(run_micro_steps(micro_steps, loss_sum));
  report.loss = loss_sum / static_cast<double>(report.trained_tokens);
  report.compute_seconds = seconds_since(begin);
  return {};
}

Status TrainStep::optimise(StepReport& report) {
  const Clock::time_point begin = Clock::now();
  session_.write(kHyperInput, optimiser_hyper(report.learning_rate, report.step, job_.plan.adamw));
  RETURN_IF_ERROR(timing_ != nullptr ? run_timed(kOptimiserStep) : session_.run(kOptimiserStep));
  timing_ = nullptr;
  report.gradient_norm = session_.output_f32(kOptimiserStep, kGradientNormOutput)[0];
  report.optimiser_seconds = seconds_since(begin);
  return session_.status();
}

void TrainStep::discard(StepReport& report) {
  double sum = 0;
  for (const TrainedValue& value : job_.plan.trained) {
    const std::string name = gradient_sum_name(value.name);
    std::vector<float> values = session_.read_state(name);
    sum += sum_of_squares(values);
    std::fill(values.begin(), values.end(), 0.0f);
    session_.write(name, std::span<const float>(values));
  }
  report.gradient_norm = std::sqrt(sum);
  report.skipped = true;
  timing_ = nullptr;
}

std::vector<LayerNorms> TrainStep::layer_norms() const {
  std::vector<LayerNorms> layers;
  for (const AdapterModule& module : job_.adapter.modules) {
    const std::string a = module.a_name(), b = module.b_name();
    const double gradient = sum_of_squares(session_.read_state(gradient_sum_name(a))) +
                            sum_of_squares(session_.read_state(gradient_sum_name(b)));
    const double change =
        std::sqrt(sum_of_squares(session_.read_state(a)) * sum_of_squares(session_.read_state(b)));
    layers.push_back({module.key, std::sqrt(gradient), module.scale * change});
  }
  return layers;
}

std::string TrainStep::rows_text() const {
  constexpr size_t kShown = 8;
  std::string out;
  size_t count = 0;
  for (const MicroBatch& batch : batches_) {
    for (const PackedRow& row : batch.rows) {
      if (++count <= kShown) out += fmt::format("{}{}", out.empty() ? "" : ", ", row.row + 1);
    }
  }
  if (count > kShown) out += fmt::format(" and {} more", count - kShown);
  return out;
}

Result<std::string> TrainStep::name_not_finite(int64_t micro_steps) {
  double ignored = 0;
  RETURN_IF_ERROR(run_micro_steps(micro_steps, ignored));
  for (const TrainedValue& value : job_.plan.trained) {
    for (const float x : session_.read_state(gradient_sum_name(value.name))) {
      if (!std::isfinite(x)) return "the gradient of " + value.name;
    }
  }
  return std::string("the gradient norm");
}

}  // namespace tenon
