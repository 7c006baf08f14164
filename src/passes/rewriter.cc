#include "passes/rewriter.h"

#include <utility>

namespace tenon {

Rewriter::Rewriter(const Program& from) : from_(from), builder_(to_), map_(from.values.size()) {
  to_.name = from.name;
  to_.values.reserve(from.values.size());
  to_.ops.reserve(from.ops.size());
  for (size_t i = 0; i < from.values.size(); ++i) {
    const Value& value = from.values[i];
    if (value.producer.valid()) continue;
    map_[i] = builder_.add_static(value.role, value.name, value.type);
  }
  for (const Constant& constant : from.constants)
    to_.constants.push_back({map(constant.value), constant.data});
}

ValueId Rewriter::map(ValueId old) const {
  const ValueId now = map_[static_cast<size_t>(old.index)];
  CHECK(now.valid(), "a pass reads a value that it has not copied");
  return now;
}

std::vector<ValueId> Rewriter::emit(const Op& op) {
  std::vector<ValueId> inputs;
  for (ValueId id : op.inputs) inputs.push_back(map(id));
  builder_.set_block(op.block);
  builder_.set_name(op.name);
  builder_.set_role(Role::activation);
  return builder_.emit(*op.def, std::move(inputs), op.attrs);
}

void Rewriter::copy(const Op& op) {
  const std::vector<ValueId> outputs = emit(op);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value& old = from_.value(op.outputs[i]);
    Value& now = to_.value(outputs[i]);
    now.role = old.role;
    now.name = old.name;
    set(op.outputs[i], outputs[i]);
  }
}

std::vector<ValueId> Rewriter::clone(const Op& op) {
  return emit(op);
}

Program Rewriter::finish() {
  return std::move(to_);
}

}  // namespace tenon
