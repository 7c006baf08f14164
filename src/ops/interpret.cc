#include "ops/interpret.h"

#include "base/check.h"
#include "ir/builder.h"
#include "ops/op_cases.h"

namespace tenon {
namespace {

// References do not write their inputs.
ReferenceTensor tensor(const Type& type, const std::vector<double>& values) {
  CHECK(type.elements() == static_cast<int64_t>(values.size()), "a value is not as long as its type");
  return ReferenceTensor{type, const_cast<double*>(values.data())};
}

bool begins_at_zero(Role role) {
  return role == Role::optimiser_state || role == Role::gradient_sum || role == Role::cache;
}

}  // namespace

ReferenceValues evaluate_op(const OpDef& def, const Attrs& attrs, std::span<const Type> input_types,
                            const ReferenceValues& inputs) {
  CHECK(inputs.size() == input_types.size(), def.name);
  const auto types = def.infer(OpSite{def, attrs, input_types, {}});
  CHECK(types.ok(), types.ok() ? "" : types.error().text());
  std::vector<ReferenceTensor> in, out;
  for (size_t i = 0; i < inputs.size(); ++i) in.push_back(tensor(input_types[i], inputs[i]));
  ReferenceValues outputs;
  outputs.reserve(types->size());
  for (const Type& type : *types) {
    outputs.emplace_back(static_cast<size_t>(type.elements()));
    out.push_back(tensor(type, outputs.back()));
  }
  def.reference(ReferenceCall{attrs, in, out});
  return outputs;
}

ReferenceValues evaluate_reference(const Program& program,
                                   const std::map<std::string, std::vector<double>, std::less<>>& statics,
                                   Rounding rounding) {
  const auto rounded = [&](std::vector<double>& data, DType dtype) {
    if (rounding == Rounding::none) return;
    for (double& x : data) x = round_to_dtype(x, dtype);
  };
  ReferenceValues values(program.values.size());
  for (size_t i = 0; i < program.values.size(); ++i) {
    const Value& value = program.values[i];
    if (value.producer.valid() || value.role == Role::constant) continue;
    const auto given = statics.find(value.name);
    if (given != statics.end()) {
      values[i] = given->second;
      rounded(values[i], value.type.dtype);
    } else {
      CHECK(begins_at_zero(value.role), value.name);
      values[i].assign(static_cast<size_t>(value.type.elements()), 0.0);
    }
  }
  for (const Constant& constant : program.constants) {
    values[static_cast<size_t>(constant.value.index)].assign(constant.data.begin(), constant.data.end());
  }
  for (const Op& op : program.ops) {
    ReferenceValues inputs;
    for (ValueId id : op.inputs) inputs.push_back(values[static_cast<size_t>(id.index)]);
    ReferenceValues outputs = evaluate_op(*op.def, op.attrs, site_types(program, op).inputs, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      rounded(outputs[i], program.value(op.outputs[i]).type.dtype);
      values[static_cast<size_t>(op.outputs[i].index)] = std::move(outputs[i]);
    }
  }
  return values;
}

}  // namespace tenon
