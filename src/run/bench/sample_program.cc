#include "run/bench/sample_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/check.h"
#include "ir/builder.h"

namespace tenon {
namespace {

// Whether nothing runs for the op: every output is a view of an input.
bool only_views(const Program& program, const Op& op) {
  const SiteTypes types = site_types(program, op);
  const std::vector<Alias> aliases = op_aliases({*op.def, op.attrs, types.inputs, types.outputs});
  return !aliases.empty() &&
         std::ranges::all_of(aliases, [](const Alias& alias) { return alias.kind == AliasKind::view; });
}

class Sampler {
 public:
  Sampler(const Program& whole, SampledProgram& out)
      : whole_(whole), out_(out), builder_(out.program), mapped_(whole.values.size()) {
    out.program.name = whole.name;
  }

  void take(int32_t index) {
    const Op& op = whole_.ops[static_cast<size_t>(index)];
    std::vector<ValueId> inputs;
    for (ValueId id : op.inputs) inputs.push_back(input(id));
    builder_.set_name(op.name);
    builder_.set_block(op.block);
    const std::vector<ValueId> outputs = builder_.emit(*op.def, std::move(inputs), op.attrs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      mapped_[static_cast<size_t>(op.outputs[i].index)] = outputs[i];
      const Value& value = out_.program.value(outputs[i]);
      if (is_static(value.role)) latest_[value.name] = outputs[i];
    }
    out_.ops.push_back(index);
  }

  // Whether an op can be taken without a new input.
  bool follows(const Op& op) const {
    return std::ranges::all_of(op.inputs, [&](ValueId id) { return known(id).valid(); });
  }

  void mark_outputs() {
    std::vector<bool> read(out_.program.values.size(), false);
    for (const Op& op : out_.program.ops) {
      for (ValueId id : op.inputs) read[static_cast<size_t>(id.index)] = true;
    }
    for (size_t i = 0; i < read.size(); ++i) {
      const Value& value = out_.program.values[i];
      if (read[i] || !value.producer.valid() || is_static(value.role)) continue;
      if (only_views(out_.program, out_.program.op(value.producer))) continue;
      builder_.mark_output(ValueId{static_cast<int32_t>(i)}, fmt::format("output {}", i));
    }
  }

 private:
  ValueId known(ValueId id) const { return mapped_[static_cast<size_t>(id.index)]; }

  ValueId input(ValueId id) {
    const Value& value = whole_.value(id);
    if (is_static(value.role)) return static_input(value, id);
    ValueId& at = mapped_[static_cast<size_t>(id.index)];
    if (!at.valid()) at = builder_.add_static(Role::input, fmt::format("computed {}", id.index), value.type);
    return at;
  }

  // A static as the last op that was taken left it.
  ValueId static_input(const Value& value, ValueId id) {
    const auto [latest, added] = latest_.emplace(value.name, ValueId());
    if (added) latest->second = new_static(value);
    mapped_[static_cast<size_t>(id.index)] = latest->second;
    return latest->second;
  }

  ValueId new_static(const Value& value) {
    const ValueId id = builder_.add_static(value.role, value.name, value.type);
    for (const Constant& constant : whole_.constants) {
      if (whole_.value(constant.value).name == value.name)
        out_.program.constants.push_back({id, constant.data});
    }
    return id;
  }

  const Program& whole_;
  SampledProgram& out_;
  Builder builder_;
  std::vector<ValueId> mapped_;            // by value of the whole
  std::map<std::string, ValueId> latest_;  // by name of a static
};

}  // namespace

SampledProgram sample_program(const Program& whole, const std::vector<bool>& chosen) {
  CHECK(chosen.size() == whole.ops.size(), whole.name);
  SampledProgram out;
  Sampler sampler(whole, out);
  for (size_t i = 0; i < whole.ops.size(); ++i) {
    const bool comes_along = only_views(whole, whole.ops[i]) && sampler.follows(whole.ops[i]);
    if (chosen[i] || comes_along) sampler.take(static_cast<int32_t>(i));
  }
  sampler.mark_outputs();
  return out;
}

}  // namespace tenon
