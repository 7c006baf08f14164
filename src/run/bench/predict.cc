#include "run/bench/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "ir/builder.h"
#include "run/bench/kernel_times.h"
#include "run/programs.h"

namespace tenon {
namespace {

constexpr const char* kStep = "step";
constexpr int kRuns = 3;
constexpr size_t kSweptBytes = 64 << 20;  // more than the caches hold

std::string input_name(size_t index) {
  return fmt::format("input {}", index);
}

// The op alone; whatever it reads is given.
Program step_program(const Program& program, const Op& op) {
  Program out;
  out.name = kStep;
  Builder builder(out);
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    inputs.push_back(builder.add_static(Role::input, input_name(i), program.value(op.inputs[i]).type));
  }
  const std::vector<ValueId> outputs = builder.emit(*op.def, std::move(inputs), op.attrs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (out.value(outputs[i]).role == Role::activation)
      builder.mark_output(outputs[i], fmt::format("output {}", i));
  }
  return out;
}

// What the op's input `value` holds where its length counts: sequences of `sequence_tokens`, one after the
// other; in decoding each token is the last of one. Empty: zeros do.
std::vector<int32_t> typical_input(const Program& program, const Value& value, int64_t sequence_tokens) {
  const bool begins = value.name.ends_with(kSequenceBeginInput);
  if (value.role != Role::input || !(begins || value.name.ends_with(kPositionsInput))) return {};
  std::vector<int32_t> out(static_cast<size_t>(value.type.elements()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t token = static_cast<int64_t>(i), place = token % sequence_tokens;
    const int64_t position = program.name == kDecode ? sequence_tokens - 1 : place;
    out[i] = static_cast<int32_t>(begins ? token - place : position);
  }
  return out;
}

// In a step of a whole model a step's inputs have mostly left the caches since they were written.
void sweep_caches(std::vector<char>& memory) {
  for (size_t i = 0; i < memory.size(); i += 64) memory[i] = static_cast<char>(memory[i] + 1);
}

class StepTimer {
 public:
  StepTimer(Device& device, int64_t sequence_tokens) : device_(device), sequence_tokens_(sequence_tokens) {
    if (device.facts().kind == DeviceKind::cpu) swept_.resize(kSweptBytes);
  }

  // The shortest of some runs, each from cold caches.
  Result<double> seconds(const Program& program, const PlanStep& step) {
    const Op& op = program.op(step.op);
    PlanOptions options;
    options.require_kernels = {fmt::format("{}={}", step.kernel->op, step.kernel->name)};
    std::vector<Program> programs;
    programs.push_back(step_program(program, op));
    ASSIGN_OR_RETURN(const Plan plan,
                     make_plan(std::move(programs), device_.facts(), device_.kernels(), options));
    ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor, Executor::prepare(plan, device_, {}));
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const std::vector<int32_t> values =
          typical_input(program, program.value(op.inputs[i]), sequence_tokens_);
      if (values.empty()) continue;
      RETURN_IF_ERROR(executor->write(input_name(i), std::as_bytes(std::span(values))));
    }
    RETURN_IF_ERROR(executor->run(kStep));
    std::vector<double> each(plan.programs[0].steps.size());
    double shortest = 1e300;
    for (int run = 0; run < kRuns; ++run) {
      sweep_caches(swept_);
      RETURN_IF_ERROR(executor->run(kStep, each));
      shortest = std::min(shortest, std::accumulate(each.begin(), each.end(), 0.0));
    }
    return shortest;
  }

 private:
  Device& device_;
  int64_t sequence_tokens_;
  std::vector<char> swept_;
};

// What tells kinds of steps apart.
std::string kind_of(const Program& program, const Op& op, const PlanStep& step) {
  std::string kind = fmt::format("{} {}", step.kernel->name, op.attrs.to_text());
  for (ValueId id : op.inputs) kind += " " + program.value(id).type.text();
  for (ValueId id : op.outputs) kind += " " + program.value(id).type.text();
  return kind;
}

}  // namespace

Result<std::vector<PredictedTime>> predict_times(const Plan& plan, Device& device, int64_t sequence_tokens) {
  StepTimer timer(device, sequence_tokens);
  std::vector<PredictedTime> out;
  std::map<std::string, double> known;
  for (const ProgramPlan& planned : plan.programs) {
    PredictedTime time{planned.program.name};
    for (const PlanStep& step : planned.steps) {
      if (step.kernel == nullptr) continue;
      const Op& op = planned.program.op(step.op);
      const auto [entry, added] = known.emplace(kind_of(planned.program, op, step), 0.0);
      if (added) {
        ASSIGN_OR_RETURN(entry->second, timer.seconds(planned.program, step));
      }
      time.seconds += entry->second;
    }
    out.push_back(std::move(time));
  }
  return out;
}

}  // namespace tenon
