#include <fmt/format.h>

#include <iterator>

#include "base/hash.h"
#include "plan/plan.h"

namespace tenon {

uint64_t plan_hash(const Plan& plan) {
  std::string text = fmt::format("device {} {} threads {}\n", static_cast<int>(plan.facts.kind),
                                 plan.facts.name, plan.facts.threads);
  auto to = std::back_inserter(text);
  for (const std::string& feature : plan.facts.features) fmt::format_to(to, "feature {}\n", feature);
  for (const StaticValue& value : plan.statics) {
    fmt::format_to(to, "{} {} {} {} {}\n", value.name, value.type.text(), role_name(value.role),
                   value.external, value.offset);
  }
  fmt::format_to(to, "{} {} {}\n", plan.static_bytes, plan.work_bytes, plan.external_bytes);
  for (const ProgramPlan& program : plan.programs) {
    fmt::format_to(to, "{}\n", hash_text(program_hash(program.program)));
    for (const PlanStep& step : program.steps) {
      fmt::format_to(to, "{} {} {} {}\n", step.op.index, step.kernel ? step.kernel->name : "view",
                     step.workspace_offset, step.workspace_bytes);
    }
    for (const Placement& placement : program.placements) {
      fmt::format_to(to, "{} {} {} {} {} {}\n", placement_kind_name(placement.kind), placement.offset,
                     placement.bytes, placement.first_step, placement.last_step, placement.root.index);
    }
  }
  return hash_bytes(text);
}

}  // namespace tenon
