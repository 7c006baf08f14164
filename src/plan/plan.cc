#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/checked_math.h"
#include "ir/builder.h"
#include "plan/lifetimes.h"
#include "plan/pack.h"
#include "plan/select_kernel.h"

namespace tenon {
namespace {

// The static values of all programs by name, in the order in which they are first met.
class StaticTable {
 public:
  StaticTable(Plan& plan, const PlanOptions& options)
      : plan_(plan), external_(options.external.begin(), options.external.end()) {}

  Status add(const Program& program) {
    for (const Value& value : program.values) {
      if (value.producer.valid()) continue;
      const auto [entry, added] = index_.emplace(value.name, plan_.statics.size());
      if (added) {
        RETURN_IF_ERROR(append(value));
        continue;
      }
      const StaticValue& known = plan_.statics[entry->second];
      if (known.type == value.type && known.role == value.role) continue;
      return bad_argument(fmt::format("two programs disagree on it: {} {} and {} {}", role_name(known.role),
                                      known.type.text(), role_name(value.role), value.type.text()),
                          value.name);
    }
    return add_constants(program);
  }

  const StaticValue& find(const std::string& name) const { return plan_.statics[index_.at(name)]; }

 private:
  Status append(const Value& value) {
    const bool external = external_.contains(value.name);
    if (external && value.role != Role::weight) {
      return bad_argument(
          fmt::format("only a weight can stay in its file, not a value of role {}", role_name(value.role)),
          value.name);
    }
    StaticValue entry{value.name, value.type, value.role, external, external ? 0 : plan_.static_bytes};
    (external ? plan_.external_bytes : plan_.static_bytes) +=
        external ? value.type.bytes() : placed_bytes(value.type.bytes());
    plan_.statics.push_back(std::move(entry));
    return {};
  }

  Status add_constants(const Program& program) {
    for (const Constant& constant : program.constants) {
      const std::string& name = program.value(constant.value).name;
      const auto [entry, added] = constants_.emplace(name, constant.data);
      if (!added && entry->second != constant.data) {
        return bad_argument("two programs disagree on the data of a constant", name);
      }
    }
    return {};
  }

  Plan& plan_;
  std::unordered_set<std::string> external_;
  std::unordered_map<std::string, size_t> index_;
  std::unordered_map<std::string, std::vector<float>> constants_;
};

Status select_steps(ProgramPlan& out, const Plan& plan, std::span<const KernelDef> kernels,
                    const KernelRules& rules) {
  const Program& program = out.program;
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const SiteTypes types = site_types(program, op);
    const OpSite site{*op.def, op.attrs, types.inputs, types.outputs};
    PlanStep step{OpId{static_cast<int32_t>(i)}};
    if (!is_view_op(op_aliases(site))) {
      auto kernel = select_kernel(site, plan.facts, kernels, rules);
      if (!kernel.ok()) {
        return std::move(kernel).error().within(fmt::format("{} step {} {}", program.name, i, op.name));
      }
      step.kernel = *kernel;
      if (step.kernel->workspace_bytes) step.workspace_bytes = step.kernel->workspace_bytes(site, plan.facts);
    }
    out.steps.push_back(step);
  }
  return {};
}

// What is packed: the roots of the work arena by value id, then the workspaces by step.
struct WorkBlocks {
  std::vector<PackBlock> blocks;
  std::vector<ValueId> roots;          // of the first blocks
  std::vector<int32_t> scratch_steps;  // of the others
};

WorkBlocks work_blocks(const ProgramPlan& plan, const Lifetimes& lifetimes) {
  WorkBlocks work;
  for (size_t i = 0; i < lifetimes.values.size(); ++i) {
    const Lifetime& life = lifetimes.values[i];
    if (life.kind != PlacementKind::fresh) continue;
    const int64_t bytes = placed_bytes(plan.program.values[i].type.bytes());
    work.blocks.push_back({bytes, life.first_step, lifetimes.root_last_step[i]});
    work.roots.push_back(life.root);
  }
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].workspace_bytes == 0) continue;
    const auto step = static_cast<int32_t>(i);
    work.blocks.push_back({placed_bytes(plan.steps[i].workspace_bytes), step, step});
    work.scratch_steps.push_back(step);
  }
  return work;
}

// Ranges of bytes that something used, merged where they touch.
class UsedRanges {
 public:
  // Adds a range and returns whether any of it was used before.
  bool add(int64_t begin, int64_t end) {
    bool used = false;
    auto next = ends_.lower_bound(begin);
    if (next != ends_.begin() && std::prev(next)->second >= begin) --next;
    while (next != ends_.end() && next->first <= end) {
      used = used || (next->first < end && next->second > begin);
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = ends_.erase(next);
    }
    ends_.emplace(begin, end);
    return used;
  }

 private:
  std::map<int64_t, int64_t> ends_;  // by begin
};

// Which roots have bytes that earlier values left, in the order in which steps write them.
std::vector<bool> reused_blocks(std::span<const PackBlock> blocks, std::span<const int64_t> offsets) {
  std::vector<size_t> order(blocks.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return blocks[a].first < blocks[b].first; });
  std::vector<bool> reused(blocks.size(), false);
  UsedRanges ranges;
  for (size_t i : order) {
    if (blocks[i].bytes > 0) reused[i] = ranges.add(offsets[i], offsets[i] + blocks[i].bytes);
  }
  return reused;
}

void place_work(ProgramPlan& plan, const Lifetimes& lifetimes, bool reuse) {
  const WorkBlocks work = work_blocks(plan, lifetimes);
  const Packing packing = reuse ? pack_blocks(work.blocks) : pack_without_reuse(work.blocks);
  const std::vector<bool> reused = reused_blocks(work.blocks, packing.offsets);
  for (size_t i = 0; i < work.roots.size(); ++i) {
    Placement& placement = plan.placements[static_cast<size_t>(work.roots[i].index)];
    placement.offset = packing.offsets[i];
    placement.kind = reused[i] ? PlacementKind::reuse : PlacementKind::fresh;
  }
  for (size_t i = 0; i < work.scratch_steps.size(); ++i) {
    plan.steps[static_cast<size_t>(work.scratch_steps[i])].workspace_offset =
        packing.offsets[work.roots.size() + i];
  }
  const MostLive most = most_live(work.blocks);
  plan.peak_bytes = packing.peak_bytes;
  plan.lower_bound_bytes = most.bytes;
  // Outputs outlive the last step; the peak is then at that step.
  plan.peak_step = std::min(most.step, std::max(0, static_cast<int32_t>(plan.steps.size()) - 1));
}

void place_statics(ProgramPlan& plan, const StaticTable& statics) {
  const Program& program = plan.program;
  for (size_t i = 0; i < program.values.size(); ++i) {
    Placement& placement = plan.placements[i];
    const Value& value = program.values[i];
    if (!value.producer.valid()) {
      const StaticValue& entry = statics.find(value.name);
      placement.kind = entry.external ? PlacementKind::external : PlacementKind::static_data;
      placement.offset = entry.offset;
    }
  }
}

// Values inside another's bytes lie where it does.
Status place_shared(ProgramPlan& plan) {
  for (size_t i = 0; i < plan.placements.size(); ++i) {
    Placement& placement = plan.placements[i];
    const Placement& root = plan.root(ValueId{static_cast<int32_t>(i)});
    placement.offset = root.offset;
    if (placement.kind == PlacementKind::in_place && root.kind == PlacementKind::external) {
      return bad_argument("a value that stays in its file is updated in place",
                          plan.program.value(placement.root).name, "Leave it out of the external weights.");
    }
  }
  return {};
}

Status plan_program(ProgramPlan& out, const Plan& plan, const StaticTable& statics,
                    std::span<const KernelDef> kernels, const PlanOptions& options) {
  RETURN_IF_ERROR(select_steps(out, plan, kernels, {options.without_kernels, options.require_kernels}));
  std::vector<const KernelDef*> chosen;
  for (const PlanStep& step : out.steps) chosen.push_back(step.kernel);
  ASSIGN_OR_RETURN(const Lifetimes lifetimes, find_lifetimes(out.program, chosen, options.in_place));
  for (size_t i = 0; i < lifetimes.values.size(); ++i) {
    const Lifetime& life = lifetimes.values[i];
    CHECK(life.root.valid(), "a value that no op produces");
    out.placements.push_back(
        {life.kind, 0, out.program.values[i].type.bytes(), life.first_step, life.last_step, life.root});
  }
  place_statics(out, statics);
  place_work(out, lifetimes, options.reuse);
  return place_shared(out);
}

}  // namespace

std::string_view placement_kind_name(PlacementKind kind) {
  switch (kind) {
    case PlacementKind::external:
      return "external";
    case PlacementKind::static_data:
      return "static";
    case PlacementKind::fresh:
      return "fresh";
    case PlacementKind::reuse:
      return "reuse";
    case PlacementKind::in_place:
      return "in_place";
    case PlacementKind::view:
      return "view";
  }
  CHECK(false, "unknown placement kind");
}

int64_t placed_bytes(int64_t bytes) {
  return round_up(bytes, kArenaAlignment);
}

const ProgramPlan* Plan::find(std::string_view program) const {
  for (const ProgramPlan& candidate : programs) {
    if (candidate.program.name == program) return &candidate;
  }
  return nullptr;
}

Result<Plan> make_plan(std::vector<Program> programs, const DeviceFacts& facts,
                       std::span<const KernelDef> kernels, const PlanOptions& options) {
  Plan plan;
  plan.facts = facts;
  StaticTable statics(plan, options);
  for (Program& program : programs) {
    if (plan.find(program.name)) return bad_argument("two programs have this name", program.name);
    RETURN_IF_ERROR(statics.add(program));
    plan.programs.emplace_back().program = std::move(program);
  }
  for (ProgramPlan& program : plan.programs) {
    RETURN_IF_ERROR(plan_program(program, plan, statics, kernels, options));
    plan.work_bytes = std::max(plan.work_bytes, program.peak_bytes);
  }
  return plan;
}

}  // namespace tenon
