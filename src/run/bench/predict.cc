#include "run/bench/predict.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "ir/builder.h"
#include "ops/attention.h"
#include "ops/attention_grad.h"
#include "run/bench/kernel_times.h"
#include "run/bench/sample_program.h"
#include "run/bench/typical_inputs.h"
#include "run/programs.h"
#include "run/session.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSamples = 3;            // of a kind of step, where the program has as many
constexpr double kLongSeconds = 0.05;  // of a step: one sample does
constexpr double kCutSeconds = 0.1;    // of a step: fewer rows do
constexpr int64_t kFewestRows = 512;   // with fewer, packing the other operand would show
constexpr int64_t kFewestAttending = 2048;
constexpr double kRunningSeconds = 1.0;  // of repeating a sample
constexpr int kMostRuns = 8;
constexpr int64_t kLeastSweptBytes = 64 << 20;

int64_t last_cache_bytes() {
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? bytes : kLeastSweptBytes / 2;
}

// What a program can count on of the last cache, which it shares with other cores and with other machines.
int64_t own_cache_bytes() {
  return last_cache_bytes() / 2;
}

// What tells kinds of steps apart.
std::string kind_of(const Program& program, const Op& op, const PlanStep& step) {
  std::string kind = fmt::format("{} {}", step.kernel->name, op.attrs.to_text());
  for (ValueId id : op.inputs) kind += " " + program.value(id).type.text();
  for (ValueId id : op.outputs) kind += " " + program.value(id).type.text();
  return kind;
}

// Bytes that a run of the program moves through the caches at least.
int64_t touched_bytes(const Program& program, int64_t work_bytes) {
  int64_t bytes = work_bytes;
  for (const Value& value : program.values) {
    if (is_static(value.role) && !value.producer.valid()) bytes += value.type.bytes();
  }
  return bytes;
}

// The most rows of an operand that is not a weight or a state.
int64_t rows_of(const Program& program, const Op& op) {
  int64_t rows = 0;
  for (ValueId id : op.inputs) {
    const Value& value = program.value(id);
    if (value.role >= Role::input && value.type.shape.rank() > 0) rows = std::max(rows, value.type.shape[0]);
  }
  return rows;
}

// The op alone over `rows` in place of `all` rows, whatever it reads given. Nothing where its shapes are not
// proportional to them.
std::optional<Program> cut_program(const Program& program, const Op& op, int64_t all, int64_t rows) {
  SiteTypes types = site_types(program, op);
  const auto cut = [&](Type& type) {
    if (type.shape.rank() > 0 && type.shape[0] == all) type.shape[0] = rows;
  };
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (program.value(op.inputs[i]).role >= Role::input) cut(types.inputs[i]);
  }
  if (!op.def->infer({*op.def, op.attrs, types.inputs, {}}).ok()) return {};
  Program out;
  out.name = program.name;
  Builder builder(out);
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const Value& value = program.value(op.inputs[i]);
    const bool written = value.role == Role::input;  // by its name (run/bench/typical_inputs.h)
    inputs.push_back(builder.add_static(Role::input, written ? value.name : fmt::format("operand {}", i),
                                        types.inputs[i]));
  }
  for (ValueId id : builder.emit(*op.def, std::move(inputs), op.attrs)) {
    if (out.value(id).role == Role::activation) builder.mark_output(id, fmt::format("output {}", id.index));
  }
  return out;
}

// What reading the clock adds to the time of each step: the least of some readings.
double clock_seconds() {
  double least = 1;
  for (int i = 0; i < 100; ++i) {
    const Clock::time_point begin = Clock::now();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return least;
}

bool is_attention(const Op& op) {
  return op.def == &attention_op() || op.def == &attention_grad_op();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Predictor {
 public:
  Predictor(const Plan& plan, const Model* model, Device& device, const PredictSettings& settings)
      : plan_(plan), model_(model), device_(device), settings_(settings) {}

  Result<double> seconds(const ProgramPlan& planned) {
    RETURN_IF_ERROR(learn(planned));
    double sum = 0;
    for (const PlanStep& step : planned.steps) {
      if (step.kernel != nullptr)
        sum += known_.at(kind_of(planned.program, planned.program.op(step.op), step));
    }
    return sum;
  }

 private:
  // By the arithmetic that the machine is said to do at best; 0 where nothing is said.
  double estimate(const Program& program, const Op& op) const {
    const KernelTime work = step_work(program, op, settings_.sequence_tokens);
    const double gflops = work.bf16 ? device_.facts().gflops_bf16 : device_.facts().gflops_f32;
    return gflops > 0 ? static_cast<double>(work.flops) / (gflops * 1e9) : 0;
  }

  // Times every kind of step that no earlier program had.
  Status learn(const ProgramPlan& planned) {
    std::map<std::string, int> samples;
    std::vector<bool> chosen(planned.steps.size(), false);
    for (size_t i = 0; i < planned.steps.size(); ++i) {
      if (planned.steps[i].kernel == nullptr) continue;
      const Op& op = planned.program.op(planned.steps[i].op);
      const std::string kind = kind_of(planned.program, op, planned.steps[i]);
      if (known_.contains(kind)) continue;
      const double least = estimate(planned.program, op);
      if (samples[kind] == 0 && least > kCutSeconds) {
        ASSIGN_OR_RETURN(const bool cut, learn_by_fewer_rows(planned.program, op, kind, least));
        if (cut) continue;
      }
      const int wanted = least > kLongSeconds ? 1 : kSamples;
      chosen[i] = ++samples[kind] <= wanted;
    }
    if (std::ranges::find(chosen, true) == chosen.end()) return {};
    return learn_by_sample(planned, chosen);
  }

  // By the ratio of the work, which is that of the rows, or of the pairs that attention sees.
  Result<bool> learn_by_fewer_rows(const Program& program, const Op& op, const std::string& kind,
                                   double least) {
    const int64_t all = rows_of(program, op);
    const int64_t rows = std::max(is_attention(op) ? kFewestAttending : kFewestRows,
                                  static_cast<int64_t>(static_cast<double>(all) * kCutSeconds / least));
    if (rows * 2 > all) return false;
    std::optional<Program> cut = cut_program(program, op, all, rows);
    if (!cut) return false;
    const int64_t tokens = settings_.sequence_tokens;
    const int64_t part = step_work(*cut, cut->ops[0], std::min(tokens, rows)).flops;
    if (part == 0) return false;
    const double ratio =
        static_cast<double>(step_work(program, op, std::min(tokens, all)).flops) / static_cast<double>(part);
    ASSIGN_OR_RETURN(const std::vector<std::vector<double>> runs, time_program(std::move(*cut), kCutSeconds));
    std::vector<double> seconds;
    for (const std::vector<double>& steps : runs)
      seconds.push_back(std::accumulate(steps.begin(), steps.end(), 0.0));
    known_[kind] = median(std::move(seconds)) * ratio;
    return true;
  }

  Status learn_by_sample(const ProgramPlan& planned, const std::vector<bool>& chosen) {
    SampledProgram sample = sample_program(planned.program, chosen);
    ASSIGN_OR_RETURN(const std::vector<std::vector<double>> runs,
                     time_program(std::move(sample.program), kRunningSeconds));
    std::map<std::string, std::vector<double>> seconds;
    for (size_t i = 0; i < sample.ops.size(); ++i) {
      const PlanStep& step = planned.steps[static_cast<size_t>(sample.ops[i])];
      if (step.kernel == nullptr) continue;
      const std::string kind = kind_of(planned.program, planned.program.op(step.op), step);
      for (const std::vector<double>& steps : runs) seconds[kind].push_back(steps[i]);
    }
    for (auto& [kind, each] : seconds) known_[kind] = median(std::move(each));
    return {};
  }

  // The times of each step by run, of as many runs as begin within that time; the first, which warms up,
  // counts only where it is alone.
  Result<std::vector<std::vector<double>>> time_program(Program program, double at_most_seconds) {
    std::vector<Program> programs;
    programs.push_back(std::move(program));
    ASSIGN_OR_RETURN(const Plan plan, plan_programs(std::move(programs), model_, device_, settings_.without));
    StaticSource source;
    source.load = [](const StaticValue&, std::span<std::byte>) { return Status(); };
    source.external = [this](const StaticValue& value) -> Result<std::span<const std::byte>> {
      return model_->checkpoint.bytes(model_->weights.find(value.name)->tensor());
    };
    ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor, Executor::prepare(plan, device_, source));
    const ProgramPlan& planned = plan.programs[0];
    RETURN_IF_ERROR(write_inputs(planned.program, *executor));
    const bool sweeps =
        device_.facts().kind == DeviceKind::cpu &&
        touched_bytes(planned_whole(planned.program.name), plan_.work_bytes) > own_cache_bytes();
    std::vector<std::vector<double>> runs;
    const Clock::time_point begin = Clock::now();
    const auto left = [&] {
      return std::chrono::duration<double>(Clock::now() - begin).count() < at_most_seconds;
    };
    while (runs.empty() || (static_cast<int>(runs.size()) <= kMostRuns && left())) {
      if (sweeps) sweep_caches();
      RETURN_IF_ERROR(executor->run(planned.program.name, runs.emplace_back(planned.steps.size())));
    }
    if (runs.size() > 1) runs.erase(runs.begin());
    const double clock = clock_seconds();
    for (std::vector<double>& steps : runs) {
      for (double& seconds : steps) seconds = std::max(0.0, seconds - clock);
    }
    return runs;
  }

  const Program& planned_whole(std::string_view name) const { return plan_.find(name)->program; }

  Status write_inputs(const Program& program, Executor& executor) const {
    for (size_t i = 0; i < program.values.size(); ++i) {
      const ValueId id{static_cast<int32_t>(i)};
      const std::vector<int32_t> values =
          typical_input(program, id, settings_.sequence_tokens, begin_of(program));
      if (values.empty()) continue;
      RETURN_IF_ERROR(executor.write(program.value(id).name, std::as_bytes(std::span(values))));
    }
    return {};
  }

  // Programs with caches run in the middle of the context.
  int64_t begin_of(const Program& program) const {
    const bool caches = std::ranges::any_of(planned_whole(program.name).values,
                                            [](const Value& value) { return value.role == Role::cache; });
    if (!caches) return 0;
    for (const Value& value : program.values) {
      if (value.role == Role::input && value.name.ends_with(kPositionsInput))
        return middle_position(settings_.sequence_tokens, value.type.elements());
    }
    return 0;
  }

  // In a step of a whole model its weights and its inputs have left the caches since the step before. Reading
  // leaves nothing that would have to be written back first.
  void sweep_caches() {
    swept_.resize(static_cast<size_t>(std::max(kLeastSweptBytes, 2 * last_cache_bytes())), 1);
    int64_t sum = 0;
    for (size_t i = 0; i < swept_.size(); i += 64) sum += swept_[i];
    sink_ = sum;
  }

  const Plan& plan_;
  const Model* model_;
  Device& device_;
  const PredictSettings& settings_;
  std::map<std::string, double> known_;  // seconds of a step, by kind
  std::vector<char> swept_;
  volatile int64_t sink_ = 0;
};

}  // namespace

int64_t middle_position(int64_t context_tokens, int64_t tokens) {
  return std::max<int64_t>(0, (context_tokens - tokens) / 2);
}

Result<std::vector<PredictedTime>> predict_times(const Plan& plan, const Model* model, Device& device,
                                                 const PredictSettings& settings) {
  Predictor predictor(plan, model, device, settings);
  std::vector<PredictedTime> out;
  for (const ProgramPlan& planned : plan.programs) {
    ASSIGN_OR_RETURN(const double seconds, predictor.seconds(planned));
    out.push_back({planned.program.name, seconds});
  }
  return out;
}

}  // namespace tenon
