#include "plan/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/builder.h"

namespace tenon {
namespace {

size_t at(ValueId id) {
  return static_cast<size_t>(id.index);
}

std::optional<MemoryUse> static_use(Role role) {
  switch (role) {
    case Role::weight:
      return MemoryUse::weights;
    case Role::adapter:
      return MemoryUse::adapter;
    case Role::optimiser_state:
      return MemoryUse::optimiser_state;
    case Role::gradient_sum:
      return MemoryUse::gradient_sums;
    case Role::cache:
      return MemoryUse::cache;
    case Role::constant:
    case Role::input:
      return MemoryUse::inputs;
    default:
      return std::nullopt;
  }
}

// Bytes of the work arena while they serve one purpose: those of a value from its step until an in-place
// successor takes them, or the scratch of a step (then `value` is invalid).
struct Span {
  ValueId value;
  OpId op;
  int64_t bytes = 0;
  int32_t first = 0;
  int32_t last = 0;
};

std::vector<Span> work_spans(const ProgramPlan& plan) {
  const Program& program = plan.program;
  const auto end = static_cast<int32_t>(plan.steps.size());
  std::vector<Span> spans;
  std::vector<size_t> holder(program.values.size(), 0);  // by root: the span that holds its bytes now
  for (int32_t step = 0; step < end; ++step) {
    const OpId op{step};
    for (ValueId id : program.op(op).outputs) {
      const Placement& placement = plan.placement(id);
      if (!plan.in_work_arena(id) || placement.kind == PlacementKind::view) continue;
      if (placement.kind == PlacementKind::in_place) spans[holder[at(placement.root)]].last = step - 1;
      holder[at(placement.root)] = spans.size();
      const int32_t last = std::min(placement.last_step, end - 1);
      spans.push_back({id, op, placed_bytes(placement.bytes), step, last});
    }
    const int64_t scratch = plan.steps[step].workspace_bytes;
    if (scratch > 0) spans.push_back({{}, op, placed_bytes(scratch), step, step});
  }
  return spans;
}

// The first step that computes a gradient; the number of steps where none does.
int32_t backward_begin(const Program& program) {
  for (size_t step = 0; step < program.ops.size(); ++step) {
    for (ValueId id : program.ops[step].outputs) {
      if (program.value(id).role == Role::gradient) return static_cast<int32_t>(step);
    }
  }
  return static_cast<int32_t>(program.ops.size());
}

MemoryUse span_use(const ProgramPlan& plan, const Span& span, int32_t backward) {
  if (!span.value.valid()) return MemoryUse::scratch;
  const Role role = plan.program.value(span.value).role;
  if (const auto use = static_use(role)) return *use;
  if (role == Role::gradient) return MemoryUse::gradients;
  if (role == Role::output) return MemoryUse::outputs;
  const bool kept = span.first < backward && span.last >= backward;
  return kept ? MemoryUse::kept_activations : MemoryUse::activations;
}

LiveValue live_value(const ProgramPlan& plan, const Span& span, MemoryUse use) {
  const Op& op = plan.program.op(span.op);
  const std::string op_name(op.def->name);
  if (!span.value.valid()) {
    return {op.name, op_name, std::string(plan.steps[static_cast<size_t>(span.op.index)].kernel->name), use,
            span.bytes};
  }
  const Value& value = plan.program.value(span.value);
  return {value.name, op_name, value.type.text(), use, span.bytes};
}

void add_live(MemoryReport& report, const ProgramPlan& plan) {
  const int32_t backward = backward_begin(plan.program);
  for (const Span& span : work_spans(plan)) {
    if (span.first > plan.peak_step || span.last < plan.peak_step || span.bytes == 0) continue;
    const MemoryUse use = span_use(plan, span, backward);
    report.peak_bytes[static_cast<size_t>(use)] += span.bytes;
    report.live_at_peak.push_back(live_value(plan, span, use));
  }
  std::stable_sort(report.live_at_peak.begin(), report.live_at_peak.end(),
                   [](const LiveValue& a, const LiveValue& b) { return a.bytes > b.bytes; });
}

int64_t program_flops(const Program& program) {
  int64_t flops = 0;
  for (const Op& op : program.ops) {
    const SiteTypes types = site_types(program, op);
    flops += op.def->cost(OpSite{*op.def, op.attrs, types.inputs, types.outputs}).flops;
  }
  return flops;
}

}  // namespace

std::string_view memory_use_name(MemoryUse use) {
  static constexpr std::array<std::string_view, kMemoryUses> kNames{
      "weights",          "adapter",     "optimiser state", "gradient sums", "cache",  "inputs",
      "kept activations", "activations", "gradients",       "scratch",       "outputs"};
  return kNames[static_cast<size_t>(use)];
}

MemoryReport memory_report(const Plan& plan) {
  MemoryReport report;
  report.arena_bytes = plan.arena_bytes();
  report.work_bytes = plan.work_bytes;
  report.external_bytes = plan.external_bytes;
  for (const StaticValue& value : plan.statics) {
    if (value.external) continue;
    report.static_bytes[static_cast<size_t>(*static_use(value.role))] += placed_bytes(value.type.bytes());
  }
  const ProgramPlan* largest = nullptr;
  for (const ProgramPlan& program : plan.programs) {
    report.work.push_back({program.program.name, program_flops(program.program)});
    if (largest == nullptr || program.peak_bytes > largest->peak_bytes) largest = &program;
  }
  if (largest == nullptr) return report;
  report.peak_program = largest->program.name;
  report.peak_step = largest->peak_step;
  report.lower_bound_bytes = largest->lower_bound_bytes;
  if (!largest->steps.empty()) {
    const Op& op = largest->program.op(OpId{largest->peak_step});
    report.peak_op = fmt::format("{}{}{}", op.def->name, op.name.empty() ? "" : " ", op.name);
  }
  add_live(report, *largest);
  return report;
}

std::vector<BytesByUse> memory_timeline(const ProgramPlan& plan) {
  const int32_t backward = backward_begin(plan.program);
  std::vector<BytesByUse> timeline(plan.steps.size() + 1);  // changes first, then their running sums
  for (const Span& span : work_spans(plan)) {
    const auto use = static_cast<size_t>(span_use(plan, span, backward));
    timeline[span.first][use] += span.bytes;
    timeline[span.last + 1][use] -= span.bytes;
  }
  for (size_t step = 1; step < timeline.size(); ++step) {
    for (size_t use = 0; use < kMemoryUses; ++use) timeline[step][use] += timeline[step - 1][use];
  }
  timeline.pop_back();
  return timeline;
}

}  // namespace tenon
