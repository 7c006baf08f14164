// The planner's rules, checked from the program and the offsets alone: nothing here is shared with the code
// that chose them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "ir/builder.h"
#include "plan/plan.h"

namespace tenon {
namespace {

size_t at(ValueId id) {
  return static_cast<size_t>(id.index);
}

// Bytes of an arena in use from one step to another, both included.
struct Extent {
  int64_t begin = 0;
  int64_t end = 0;
  int32_t first = 0;
  int32_t last = 0;
  std::string what;
};

Status check_extents(std::vector<Extent> extents, int64_t arena_bytes, const std::string& subject) {
  std::erase_if(extents, [](const Extent& e) { return e.begin == e.end; });
  for (const Extent& e : extents) {
    if (e.begin % kArenaAlignment != 0) return bad_argument(e.what + " is not aligned", subject);
    if (e.begin < 0 || e.end > arena_bytes) return bad_argument(e.what + " is outside its arena", subject);
  }
  std::stable_sort(extents.begin(), extents.end(),
                   [](const Extent& a, const Extent& b) { return a.first < b.first; });
  std::vector<const Extent*> by_death;
  for (const Extent& e : extents) by_death.push_back(&e);
  std::stable_sort(by_death.begin(), by_death.end(),
                   [](const Extent* a, const Extent* b) { return a->last < b->last; });
  std::map<int64_t, const Extent*> live;  // by begin; no two overlap, so looking at neighbours is enough
  size_t dead = 0;
  for (const Extent& e : extents) {
    for (; by_death[dead]->last < e.first; ++dead) live.erase(by_death[dead]->begin);
    auto next = live.lower_bound(e.begin);
    const Extent* clash = nullptr;
    if (next != live.end() && next->second->begin < e.end) clash = next->second;
    if (next != live.begin() && std::prev(next)->second->end > e.begin) clash = std::prev(next)->second;
    if (clash) return bad_argument(fmt::format("{} overlaps {}", e.what, clash->what), subject);
    live.emplace(e.begin, &e);
  }
  return {};
}

Status check_statics(const Plan& plan) {
  std::vector<Extent> extents;
  for (const StaticValue& value : plan.statics) {
    if (value.external) continue;
    extents.push_back({value.offset, value.offset + placed_bytes(value.type.bytes()), 0, 0, value.name});
  }
  return check_extents(std::move(extents), plan.static_bytes, "static arena");
}

// One program of a plan.
class Check {
 public:
  Check(const Plan& plan, const ProgramPlan& planned)
      : plan_(plan),
        planned_(planned),
        program_(planned.program),
        owner_(program_.values.size(), 0),
        generation_(program_.values.size(), 0),
        last_need_(program_.values.size(), -1) {}

  Status run() {
    if (planned_.steps.size() != program_.ops.size() ||
        planned_.placements.size() != program_.values.size()) {
      return broken("steps or placements are missing");
    }
    for (const StaticValue& value : plan_.statics) statics_.emplace(value.name, &value);
    for (size_t i = 0; i < program_.values.size(); ++i) {
      RETURN_IF_ERROR(check_placement(ValueId{static_cast<int32_t>(i)}));
    }
    for (size_t step = 0; step < program_.ops.size(); ++step) {
      RETURN_IF_ERROR(check_step(static_cast<int32_t>(step)));
    }
    for (size_t i = 0; i < program_.values.size(); ++i) {
      if (program_.values[i].role != Role::output) continue;
      RETURN_IF_ERROR(need(ValueId{static_cast<int32_t>(i)}, static_cast<int32_t>(program_.ops.size())));
    }
    return check_arena();
  }

 private:
  Error broken(std::string message) const {
    return bad_argument(std::move(message), "plan of " + program_.name);
  }
  Error broken_value(ValueId id, std::string_view message) const {
    return broken(fmt::format("%{} ({}, {}) {}", id.index, program_.value(id).name,
                              placement_kind_name(planned_.placement(id).kind), message));
  }

  Status check_placement(ValueId id) const {
    const Placement& placement = planned_.placement(id);
    const Value& value = program_.value(id);
    if (!placement.root.valid()) return broken_value(id, "has no root");
    if (placement.bytes != value.type.bytes()) return broken_value(id, "has another size than its type");
    if (placement.offset != planned_.root(id).offset) return broken_value(id, "is not where its root is");
    if (placement.first_step != value.producer.index) {
      return broken_value(id, "starts at another step than its producer");
    }
    const bool shares = placement.kind == PlacementKind::view || placement.kind == PlacementKind::in_place;
    if (shares != (placement.root != id)) return broken_value(id, "has the wrong root");
    if (value.producer.valid()) return {};
    const auto found = statics_.find(value.name);
    if (found == statics_.end()) return broken_value(id, "is not among the statics");
    const StaticValue& entry = *found->second;
    const PlacementKind kind = entry.external ? PlacementKind::external : PlacementKind::static_data;
    if (placement.kind != kind || placement.offset != entry.offset || entry.type != value.type) {
      return broken_value(id, "differs from the static value of its name");
    }
    return {};
  }

  // Reads of bytes that a later value has taken are the errors that liveness could make.
  Status need(ValueId id, int32_t step) {
    const size_t root = at(planned_.placement(id).root);
    if (generation_[at(id)] != owner_[root]) {
      return broken_value(id, fmt::format("is needed at step {} after its bytes were taken", step));
    }
    last_need_[root] = std::max(last_need_[root], step);
    return {};
  }

  Status check_step(int32_t step) {
    const Op& op = program_.ops[step];
    const SiteTypes types = site_types(program_, op);
    const std::vector<Alias> aliases = op_aliases(OpSite{*op.def, op.attrs, types.inputs, types.outputs});
    const bool view = std::any_of(aliases.begin(), aliases.end(),
                                  [](const Alias& alias) { return alias.kind == AliasKind::view; });
    const KernelDef* kernel = planned_.steps[step].kernel;
    if (view != (kernel == nullptr)) return broken(fmt::format("step {} has the wrong kernel", step));
    if (kernel && kernel->op != op.def->name)
      return broken(fmt::format("step {} has the wrong kernel", step));
    for (ValueId id : op.inputs) RETURN_IF_ERROR(need(id, step));
    for (size_t output = 0; output < op.outputs.size(); ++output) {
      const ValueId id = op.outputs[output];
      last_need_[at(planned_.placement(id).root)] =
          std::max(last_need_[at(planned_.placement(id).root)], step);
      RETURN_IF_ERROR(check_output(step, static_cast<int>(output), aliases));
    }
    return {};
  }

  Status check_output(int32_t step, int output, std::span<const Alias> aliases) {
    const Op& op = program_.ops[step];
    const ValueId id = op.outputs[output];
    const Placement& placement = planned_.placement(id);
    const Alias* used = nullptr;
    for (const Alias& alias : aliases) {
      if (alias.output != output) continue;
      const bool same_bytes = planned_.placement(op.inputs[alias.input]).root == placement.root;
      if (alias.kind != AliasKind::may && !same_bytes) return broken_value(id, "is not where it must be");
      if (same_bytes && used == nullptr) used = &alias;
    }
    if (placement.root == id) {
      if (placement.kind != PlacementKind::fresh && placement.kind != PlacementKind::reuse) {
        return broken_value(id, "has bytes of its own");
      }
      return {};
    }
    if (used == nullptr) return broken_value(id, "shares bytes that no alias allows");
    if ((used->kind == AliasKind::view) != (placement.kind == PlacementKind::view)) {
      return broken_value(id, "is of the wrong kind");
    }
    const size_t root = at(placement.root);
    if (used->kind != AliasKind::view) {
      if (used->kind == AliasKind::may) RETURN_IF_ERROR(check_may(step, output, *used, aliases));
      ++owner_[root];
    }
    generation_[at(id)] = owner_[root];
    return {};
  }

  Status check_may(int32_t step, int output, const Alias& used, std::span<const Alias> aliases) const {
    const Op& op = program_.ops[step];
    const ValueId id = op.outputs[output];
    if (!planned_.steps[step].kernel->in_place)
      return broken_value(id, "is in place, which its kernel cannot");
    if (!planned_.in_work_arena(id)) return broken_value(id, "overwrites a static value");
    const ValueId input = op.inputs[used.input];
    if (program_.value(input).type.bytes() != program_.value(id).type.bytes()) {
      return broken_value(id, "takes the place of a value of another size");
    }
    if (generation_[at(input)] != owner_[at(planned_.placement(id).root)]) {
      return broken_value(id, "takes bytes that another output of its step took");
    }
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (planned_.placement(op.inputs[i]).root != planned_.placement(id).root) continue;
      const bool allowed = std::any_of(aliases.begin(), aliases.end(), [&](const Alias& alias) {
        return alias.output == output && alias.input == static_cast<int>(i) && alias.kind == AliasKind::may;
      });
      if (!allowed) return broken_value(id, "overwrites an input that its op still reads");
    }
    return {};
  }

  Status check_arena() const {
    std::vector<Extent> extents;
    for (size_t i = 0; i < program_.values.size(); ++i) {
      const ValueId id{static_cast<int32_t>(i)};
      const Placement& placement = planned_.placement(id);
      if (placement.root != id || !planned_.in_work_arena(id)) continue;
      extents.push_back({placement.offset, placement.offset + placed_bytes(placement.bytes),
                         placement.first_step, last_need_[i], fmt::format("%{}", i)});
    }
    for (size_t i = 0; i < planned_.steps.size(); ++i) {
      const PlanStep& step = planned_.steps[i];
      const auto now = static_cast<int32_t>(i);
      extents.push_back({step.workspace_offset, step.workspace_offset + placed_bytes(step.workspace_bytes),
                         now, now, fmt::format("workspace of step {}", i)});
    }
    int64_t peak = 0;
    for (const Extent& e : extents) peak = std::max(peak, e.begin == e.end ? 0 : e.end);
    RETURN_IF_ERROR(check_extents(std::move(extents), plan_.work_bytes, "plan of " + program_.name));
    if (peak != planned_.peak_bytes) return broken("the peak is not where the highest placement ends");
    if (planned_.peak_bytes < planned_.lower_bound_bytes) return broken("the peak is below the lower bound");
    return {};
  }

  const Plan& plan_;
  const ProgramPlan& planned_;
  const Program& program_;
  std::unordered_map<std::string_view, const StaticValue*> statics_;
  std::vector<int32_t> owner_;       // by root: how often its bytes were taken
  std::vector<int32_t> generation_;  // by value: owner_ of its root when it was written
  std::vector<int32_t> last_need_;   // by root
};

}  // namespace

Status verify_plan(const Plan& plan) {
  RETURN_IF_ERROR(check_statics(plan));
  for (const ProgramPlan& program : plan.programs) RETURN_IF_ERROR(Check(plan, program).run());
  return {};
}

}  // namespace tenon
