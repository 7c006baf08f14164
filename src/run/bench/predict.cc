#include "run/bench/predict.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <utility>

#include "ir/builder.h"
#include "run/bench/kernel_times.h"

namespace tenon {
namespace {

constexpr const char* kStep = "step";

// The op alone; whatever it reads is given, and zero.
Program step_program(const Program& program, const Op& op) {
  Program out;
  out.name = kStep;
  Builder builder(out);
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    inputs.push_back(
        builder.add_static(Role::input, fmt::format("input {}", i), program.value(op.inputs[i]).type));
  }
  const std::vector<ValueId> outputs = builder.emit(*op.def, std::move(inputs), op.attrs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (out.value(outputs[i]).role == Role::activation)
      builder.mark_output(outputs[i], fmt::format("output {}", i));
  }
  return out;
}

Result<double> step_seconds(Program program, const PlanStep& step, Device& device) {
  PlanOptions options;
  options.require_kernels = {fmt::format("{}={}", step.kernel->op, step.kernel->name)};
  std::vector<Program> programs;
  programs.push_back(std::move(program));
  ASSIGN_OR_RETURN(const Plan plan,
                   make_plan(std::move(programs), device.facts(), device.kernels(), options));
  ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor, Executor::prepare(plan, device, {}));
  ASSIGN_OR_RETURN(const std::vector<KernelTime> times, time_kernels(*executor, plan.programs[0], 2));
  return times[0].seconds;
}

// What tells kinds of steps apart.
std::string kind_of(const Program& program, const Op& op, const PlanStep& step) {
  std::string kind = fmt::format("{} {}", step.kernel->name, op.attrs.to_text());
  for (ValueId id : op.inputs) kind += " " + program.value(id).type.text();
  for (ValueId id : op.outputs) kind += " " + program.value(id).type.text();
  return kind;
}

}  // namespace

Result<std::vector<PredictedTime>> predict_times(const Plan& plan, Device& device) {
  std::vector<PredictedTime> out;
  std::map<std::string, double> known;
  for (const ProgramPlan& planned : plan.programs) {
    PredictedTime time{planned.program.name};
    for (const PlanStep& step : planned.steps) {
      if (step.kernel == nullptr) continue;
      const Op& op = planned.program.op(step.op);
      const auto [entry, added] = known.emplace(kind_of(planned.program, op, step), 0.0);
      if (added) {
        ASSIGN_OR_RETURN(entry->second, step_seconds(step_program(planned.program, op), step, device));
      }
      time.seconds += entry->second;
    }
    out.push_back(std::move(time));
  }
  return out;
}

}  // namespace tenon
