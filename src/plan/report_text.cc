// The report and the steps as text and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/bytes.h"
#include "base/json.h"
#include "plan/report.h"

namespace tenon {
namespace {

constexpr size_t kLiveLines = 16;

std::string size_cell(int64_t bytes) {
  return bytes == 0 ? fmt::format("{:>11} {:>16}", "-", "")
                    : fmt::format("{:>11} {:>16}", format_bytes(bytes), bytes);
}

std::string type_list(const Program& program, const std::vector<ValueId>& ids) {
  std::string out;
  for (ValueId id : ids) out += (out.empty() ? "" : ", ") + program.value(id).type.text();
  return out;
}

Json by_use_json(const BytesByUse& bytes) {
  Json out = Json::object();
  for (size_t use = 0; use < kMemoryUses; ++use) {
    if (bytes[use] != 0) out[std::string(memory_use_name(static_cast<MemoryUse>(use)))] = bytes[use];
  }
  return out;
}

std::string live_text(const MemoryReport& report) {
  std::string out;
  auto to = std::back_inserter(out);
  const size_t shown = std::min(report.live_at_peak.size(), kLiveLines);
  for (size_t i = 0; i < shown; ++i) {
    const LiveValue& value = report.live_at_peak[i];
    fmt::format_to(to, "  {} {:17} {:20} {:18} {}\n", size_cell(value.bytes), memory_use_name(value.use),
                   value.type, value.op, value.name);
  }
  int64_t rest = 0;
  for (size_t i = shown; i < report.live_at_peak.size(); ++i) rest += report.live_at_peak[i].bytes;
  if (rest > 0) {
    fmt::format_to(to, "  {} in {} more\n", size_cell(rest), report.live_at_peak.size() - shown);
  }
  return out;
}

}  // namespace

std::string memory_report_text(const MemoryReport& report) {
  std::string out;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "{:18}{:>28} {:>28}\n", "use", "all the time (bytes)", "at the peak (bytes)");
  for (size_t use = 0; use < kMemoryUses; ++use) {
    if (report.static_bytes[use] == 0 && report.peak_bytes[use] == 0) continue;
    fmt::format_to(to, "{:18}{} {}\n", memory_use_name(static_cast<MemoryUse>(use)),
                   size_cell(report.static_bytes[use]), size_cell(report.peak_bytes[use]));
  }
  fmt::format_to(to, "{:18}{} {}\n", "arenas", size_cell(report.arena_bytes - report.work_bytes),
                 size_cell(report.work_bytes));
  fmt::format_to(to, "{:18}{:>28} {}\n", "lower bound", "", size_cell(report.lower_bound_bytes));
  fmt::format_to(to, "{:18}{}\n", "mapped files", size_cell(report.external_bytes));
  fmt::format_to(to, "{:18}{}\n", "allocated in all", size_cell(report.arena_bytes));
  for (const ProgramWork& program : report.work) {
    fmt::format_to(to, "{:18}{:>7.3f} GFLOP a run of {}\n", "work", static_cast<double>(program.flops) * 1e-9,
                   program.program);
  }
  if (!report.live_at_peak.empty()) {
    fmt::format_to(to, "\nThe peak is at step {} of {} ({}), where these are live:\n{}", report.peak_step,
                   report.peak_program, report.peak_op, live_text(report));
  }
  return out;
}

std::string memory_report_json(const MemoryReport& report) {
  Json live = Json::array();
  for (const LiveValue& value : report.live_at_peak) {
    live.push_back({{"name", value.name},
                    {"op", value.op},
                    {"type", value.type},
                    {"use", memory_use_name(value.use)},
                    {"bytes", value.bytes}});
  }
  Json work = Json::object();
  for (const ProgramWork& program : report.work) work[program.program] = program.flops;
  const Json out{{"arena_bytes", report.arena_bytes},
                 {"static_bytes", report.arena_bytes - report.work_bytes},
                 {"work_bytes", report.work_bytes},
                 {"lower_bound_bytes", report.lower_bound_bytes},
                 {"external_bytes", report.external_bytes},
                 {"flops", work},
                 {"static_by_use", by_use_json(report.static_bytes)},
                 {"peak_by_use", by_use_json(report.peak_bytes)},
                 {"peak_program", report.peak_program},
                 {"peak_step", report.peak_step},
                 {"peak_op", report.peak_op},
                 {"live_at_peak", live}};
  return out.dump(2);
}

std::string steps_text(const ProgramPlan& plan) {
  std::string out;
  auto to = std::back_inserter(out);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    const Op& op = plan.program.op(step.op);
    std::string places;
    for (ValueId id : op.outputs) {
      const Placement& placement = plan.placement(id);
      fmt::format_to(std::back_inserter(places), "{}{} @{} +{}", places.empty() ? "" : ", ",
                     placement_kind_name(placement.kind), placement.offset, placement.bytes);
    }
    if (step.workspace_bytes > 0) {
      fmt::format_to(std::back_inserter(places), ", scratch @{} +{}", step.workspace_offset,
                     step.workspace_bytes);
    }
    fmt::format_to(to, "{:5} {:20} {:28} ({}) -> ({})  {}", i, op.def->name,
                   step.kernel ? step.kernel->name : "-", type_list(plan.program, op.inputs),
                   type_list(plan.program, op.outputs), places);
    if (!op.name.empty()) fmt::format_to(to, "  # {}", op.name);
    out += '\n';
  }
  return out;
}

}  // namespace tenon
