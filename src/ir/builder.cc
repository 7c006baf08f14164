#include "ir/builder.h"

#include <utility>

#include "base/check.h"

namespace tenon {

Builder::Builder(Program& program) : program_(program) {
  for (size_t i = 0; i < program.values.size(); ++i) {
    const Value& value = program.values[i];
    if (!value.producer.valid()) statics_.emplace(value.name, ValueId{static_cast<int32_t>(i)});
  }
}

ValueId Builder::add_static(Role role, std::string name, Type type) {
  CHECK(is_static(role), role_name(role));
  const ValueId next{static_cast<int32_t>(program_.values.size())};
  const auto [entry, added] = statics_.emplace(name, next);
  if (added) {
    program_.values.push_back(Value{std::move(name), type, role, {}});
  } else {
    const Value& existing = program_.value(entry->second);
    CHECK(existing.type == type && existing.role == role, name);
  }
  return entry->second;
}

ValueId Builder::add_constant(std::string name, Shape shape, std::vector<float> data) {
  CHECK(shape.elements() == static_cast<int64_t>(data.size()), name);
  const size_t before = program_.values.size();
  const ValueId id = add_static(Role::constant, std::move(name), Type{DType::f32, shape});
  if (program_.values.size() > before) program_.constants.push_back(Constant{id, std::move(data)});
  return id;
}

std::vector<ValueId> Builder::emit(const OpDef& def, std::vector<ValueId> inputs, Attrs attrs) {
  std::vector<Type> input_types;
  for (ValueId id : inputs) {
    CHECK(id.valid(), def.name);
    input_types.push_back(type(id));
  }
  auto output_types = def.infer(OpSite{def, attrs, input_types, {}});
  CHECK(output_types.ok(),
        output_types.ok() ? "" : std::string(def.name) + ": " + output_types.error().text());
  const OpId op{static_cast<int32_t>(program_.ops.size())};
  std::vector<ValueId> outputs;
  for (const Type& output_type : *output_types) {
    outputs.push_back(ValueId{static_cast<int32_t>(program_.values.size())});
    program_.values.push_back(Value{name_, output_type, role_, op});
  }
  for (const Alias& alias : op_aliases(OpSite{def, attrs, input_types, *output_types})) {
    if (alias.kind != AliasKind::must) continue;
    const Value& updated = program_.value(inputs[alias.input]);
    Value& state = program_.value(outputs[alias.output]);
    state.role = updated.role;
    state.name = updated.name;
  }
  program_.ops.push_back(Op{&def, std::move(inputs), outputs, std::move(attrs), name_, block_});
  return outputs;
}

ValueId Builder::emit_one(const OpDef& def, std::vector<ValueId> inputs, Attrs attrs) {
  const std::vector<ValueId> outputs = emit(def, std::move(inputs), std::move(attrs));
  CHECK(outputs.size() == 1, def.name);
  return outputs[0];
}

void Builder::mark_output(ValueId id, std::string name) {
  Value& value = program_.value(id);
  CHECK(value.producer.valid(), name);
  value.role = Role::output;
  value.name = std::move(name);
}

SiteTypes site_types(const Program& program, const Op& op) {
  SiteTypes types;
  for (ValueId id : op.inputs) types.inputs.push_back(program.value(id).type);
  for (ValueId id : op.outputs) types.outputs.push_back(program.value(id).type);
  return types;
}

}  // namespace tenon
