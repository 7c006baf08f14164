#include "run/bench/kernel_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "ir/builder.h"
#include "ops/attention.h"
#include "ops/attention_grad.h"
#include "ops/attention_rules.h"

namespace tenon {
namespace {

std::string type_list(const std::vector<Type>& types) {
  std::string out;
  for (const Type& type : types) out += (out.empty() ? "" : ", ") + type.text();
  return out;
}

Cost cost_of(const Op& op, const SiteTypes& types, int64_t sequence_tokens) {
  Cost cost = op.def->cost({*op.def, op.attrs, types.inputs, types.outputs});
  if (sequence_tokens > 0 && (op.def == &attention_op() || op.def == &attention_grad_op())) {
    const int64_t tokens = types.inputs[0].shape[0], window = op.attrs.integer("window");
    const double pairs = static_cast<double>(attention_pairs(sequence_tokens, window)) *
                         static_cast<double>(tokens) / static_cast<double>(sequence_tokens);
    cost.flops = static_cast<int64_t>(static_cast<double>(cost.flops) * pairs /
                                      static_cast<double>(attention_pairs(tokens, window)));
  }
  return cost;
}

// Steps put together; `seconds` has one time for each step.
std::vector<KernelTime> gathered(const ProgramPlan& program, const std::vector<double>& seconds,
                                 int64_t sequence_tokens) {
  std::map<std::pair<std::string_view, std::string>, KernelTime> times;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const PlanStep& step = program.steps[i];
    if (step.kernel == nullptr) continue;
    const Op& op = program.program.op(step.op);
    KernelTime one = step_work(program.program, op, sequence_tokens);
    one.kernel = step.kernel->name;
    const auto [entry, added] = times.try_emplace({step.kernel->name, one.types}, one);
    KernelTime& time = entry->second;
    time.seconds += seconds[i];
    if (added) continue;
    time.calls += 1;
    time.flops += one.flops;
    time.bytes += one.bytes;
  }
  std::vector<KernelTime> out;
  for (auto& [key, time] : times) out.push_back(std::move(time));
  return out;
}

}  // namespace

KernelTime step_work(const Program& program, const Op& op, int64_t sequence_tokens) {
  const SiteTypes types = site_types(program, op);
  const Cost cost = cost_of(op, types, sequence_tokens);
  KernelTime time;
  time.op = op.def->name;
  time.types = fmt::format("{} -> {}", type_list(types.inputs), type_list(types.outputs));
  time.calls = 1;
  time.flops = cost.flops;
  time.bytes = cost.bytes_read + cost.bytes_written;
  time.bf16 = !types.inputs.empty() && types.inputs[0].dtype == DType::bf16;
  return time;
}

std::vector<KernelTime> describe_kernels(const ProgramPlan& program) {
  return gathered(program, std::vector<double>(program.steps.size(), 0.0), 0);
}

Result<std::vector<KernelTime>> time_kernels(Executor& executor, const ProgramPlan& program, int runs,
                                             int64_t sequence_tokens) {
  std::vector<double> seconds(program.steps.size()), best(program.steps.size(), 1e300);
  RETURN_IF_ERROR(executor.run(program.program.name));
  for (int i = 0; i < runs; ++i) {
    RETURN_IF_ERROR(executor.run(program.program.name, seconds));
    for (size_t j = 0; j < best.size(); ++j) best[j] = std::min(best[j], seconds[j]);
  }
  std::vector<KernelTime> out = gathered(program, best, sequence_tokens);
  std::stable_sort(out.begin(), out.end(),
                   [](const KernelTime& a, const KernelTime& b) { return a.seconds > b.seconds; });
  return out;
}

double least_seconds(const KernelTime& time, const DeviceFacts& ceilings) {
  const double gflops = time.bf16 ? ceilings.gflops_bf16 : ceilings.gflops_f32;
  if (gflops <= 0 || ceilings.gigabytes_per_second <= 0) return 0;
  return std::max(static_cast<double>(time.flops) / (gflops * 1e9),
                  static_cast<double>(time.bytes) / (ceilings.gigabytes_per_second * 1e9));
}

int64_t program_flops(const Program& program, int64_t sequence_tokens) {
  int64_t flops = 0;
  for (const Op& op : program.ops) flops += cost_of(op, site_types(program, op), sequence_tokens).flops;
  return flops;
}

}  // namespace tenon
