#include "plan/lifetimes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "ir/builder.h"

namespace tenon {
namespace {

size_t at(ValueId id) {
  return static_cast<size_t>(id.index);
}

// Walks the ops in order and keeps, for each root, the last read of any value that shares its bytes so far.
// Values that will share them later are made from one of those, so nothing is missed.
class Walk {
 public:
  Walk(const Program& program, bool in_place)
      : program_(program),
        in_place_(in_place),
        last_read_(program.values.size(), -1),
        taken_step_(program.values.size(), -1),
        view_of_(program.values.size()) {
    const int32_t end = static_cast<int32_t>(program.ops.size());
    for (int32_t step = 0; step < end; ++step) {
      for (ValueId id : program.ops[step].inputs) last_read_[at(id)] = step;
    }
    lifetimes_.values.resize(program.values.size());
    lifetimes_.root_last_step.assign(program.values.size(), -1);
    for (size_t i = 0; i < program.values.size(); ++i) {
      const Value& value = program.values[i];
      if (value.role == Role::output) last_read_[i] = end;
      if (value.producer.valid()) continue;
      lifetimes_.values[i] = {ValueId{static_cast<int32_t>(i)}, PlacementKind::static_data, -1, end};
      lifetimes_.root_last_step[i] = last_read_[i];
    }
  }

  Status visit(int32_t step, const KernelDef* kernel) {
    const Op& op = program_.ops[step];
    const SiteTypes types = site_types(program_, op);
    const std::vector<Alias> aliases = op_aliases(OpSite{*op.def, op.attrs, types.inputs, types.outputs});
    for (const Alias& alias : aliases) {
      if (alias.kind == AliasKind::may) continue;
      if (alias.kind == AliasKind::must) RETURN_IF_ERROR(check_update(step, op.inputs[alias.input]));
      share(step, alias, op);
    }
    if (in_place_ && kernel != nullptr && kernel->in_place) {
      for (const Alias& alias : aliases) {
        if (alias.kind == AliasKind::may && can_take(step, alias, op, aliases)) share(step, alias, op);
      }
    }
    for (ValueId id : op.outputs) {
      if (!lifetimes_.values[at(id)].root.valid()) own(step, id);
    }
    return {};
  }

  // A value is needed while views of it are.
  Lifetimes finish() {
    for (size_t step = program_.ops.size(); step-- > 0;) {
      for (ValueId output : program_.ops[step].outputs) {
        if (!view_of_[at(output)].valid()) continue;
        Lifetime& source = lifetimes_.values[at(view_of_[at(output)])];
        source.last_step = std::max(source.last_step, lifetimes_.values[at(output)].last_step);
      }
    }
    return std::move(lifetimes_);
  }

 private:
  ValueId root(ValueId id) const { return lifetimes_.values[at(id)].root; }

  // Nobody may read the old state after the step that updates it.
  Status check_update(int32_t step, ValueId input) const {
    const ValueId owner = root(input);
    if (lifetimes_.root_last_step[at(owner)] <= step) return {};
    return bad_argument(
        fmt::format("%{} or a view of it is read after this step updates it in place", input.index),
        fmt::format("program {} op {} {}", program_.name, step, program_.ops[step].def->name));
  }

  bool can_take(int32_t step, const Alias& alias, const Op& op, std::span<const Alias> aliases) const {
    const ValueId input = op.inputs[alias.input];
    const ValueId output = op.outputs[alias.output];
    const ValueId owner = root(input);
    if (lifetimes_.values[at(output)].root.valid()) return false;
    if (lifetimes_.values[at(owner)].kind != PlacementKind::fresh) return false;
    if (lifetimes_.root_last_step[at(owner)] > step || taken_step_[at(owner)] == step) return false;
    if (program_.value(input).type.bytes() != program_.value(output).type.bytes()) return false;
    // Other inputs over the same bytes must allow the overwriting too.
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (root(op.inputs[i]) != owner) continue;
      const bool allowed = std::any_of(aliases.begin(), aliases.end(), [&](const Alias& other) {
        return other.kind == AliasKind::may && other.output == alias.output &&
               other.input == static_cast<int>(i);
      });
      if (!allowed) return false;
    }
    return true;
  }

  void share(int32_t step, const Alias& alias, const Op& op) {
    const ValueId input = op.inputs[alias.input];
    const ValueId output = op.outputs[alias.output];
    CHECK(program_.value(input).type.bytes() == program_.value(output).type.bytes(), op.def->name);
    const bool view = alias.kind == AliasKind::view;
    const ValueId owner = root(input);
    own(step, output);
    Lifetime& life = lifetimes_.values[at(output)];
    life.root = owner;
    life.kind = view ? PlacementKind::view : PlacementKind::in_place;
    int32_t& needed = lifetimes_.root_last_step[at(owner)];
    needed = std::max(needed, life.last_step);
    if (view) {
      view_of_[at(output)] = input;
    } else {
      taken_step_[at(owner)] = step;
    }
  }

  // A value that nobody reads still has a place during its producing step.
  void own(int32_t step, ValueId id) {
    const int32_t last = std::max(step, last_read_[at(id)]);
    lifetimes_.values[at(id)] = {id, PlacementKind::fresh, step, last};
    lifetimes_.root_last_step[at(id)] = last;
  }

  const Program& program_;
  bool in_place_;
  std::vector<int32_t> last_read_;   // by value
  std::vector<int32_t> taken_step_;  // by root: the last step whose output took its place
  std::vector<ValueId> view_of_;     // by value: what a view shows
  Lifetimes lifetimes_;
};

}  // namespace

Result<Lifetimes> find_lifetimes(const Program& program, std::span<const KernelDef* const> kernels,
                                 bool in_place) {
  CHECK(kernels.size() == program.ops.size());
  Walk walk(program, in_place);
  for (size_t step = 0; step < program.ops.size(); ++step) {
    RETURN_IF_ERROR(walk.visit(static_cast<int32_t>(step), kernels[step]));
  }
  return walk.finish();
}

bool is_view_op(std::span<const Alias> aliases) {
  return std::any_of(aliases.begin(), aliases.end(),
                     [](const Alias& alias) { return alias.kind == AliasKind::view; });
}

}  // namespace tenon
