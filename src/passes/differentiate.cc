#include "passes/differentiate.h"

#include <algorithm>
#include <memory>

#include "ir/builder.h"
#include "ops/add.h"

namespace tenon {
namespace {

class Differentiator {
 public:
  Differentiator(Program& program, std::span<const ValueId> wrt) : program_(program), builder_(program) {
    for (ValueId id : wrt) mark_needed(id);
    spread_need(0, program.ops.size());
    builder_.set_role(Role::gradient);
  }

  bool needed(ValueId id) const {
    return static_cast<size_t>(id.index) < needed_.size() && needed_[static_cast<size_t>(id.index)];
  }

  ValueId gradient(ValueId id) const {
    return static_cast<size_t>(id.index) < gradients_.size() ? gradients_[static_cast<size_t>(id.index)]
                                                             : ValueId{};
  }

  // Adds to the gradient of a value that is used several times.
  void contribute(ValueId id, ValueId gradient) {
    if (gradients_.size() <= static_cast<size_t>(id.index)) gradients_.resize(program_.values.size());
    ValueId& sum = gradients_[static_cast<size_t>(id.index)];
    sum = sum.valid() ? add(builder_, sum, gradient) : gradient;
  }

  void backpropagate(size_t first_op, size_t end_op) {
    for (size_t i = end_op; i-- > first_op;) {
      const Op op = program_.ops[i];  // a copy: the program grows below
      std::vector<ValueId> output_gradients;
      for (ValueId id : op.outputs) output_gradients.push_back(gradient(id));
      const bool reached = std::any_of(output_gradients.begin(), output_gradients.end(),
                                       [](ValueId id) { return id.valid(); });
      if (reached) backpropagate_op(op, output_gradients);
    }
  }

 private:
  void mark_needed(ValueId id) {
    if (needed_.size() <= static_cast<size_t>(id.index)) needed_.resize(program_.values.size(), false);
    needed_[static_cast<size_t>(id.index)] = true;
  }

  // A value is needed when an input of its producer is.
  void spread_need(size_t first_op, size_t end_op) {
    for (size_t i = first_op; i < end_op; ++i) {
      const Op& op = program_.ops[i];
      const bool any =
          std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) { return needed(id); });
      if (!any) continue;
      for (ValueId id : op.outputs) mark_needed(id);
    }
  }

  void backpropagate_op(const Op& op, std::span<const ValueId> output_gradients) {
    const size_t count = op.inputs.size();
    const auto wanted = std::make_unique<bool[]>(count);
    bool any = false;
    for (size_t i = 0; i < count; ++i) any |= wanted[i] = needed(op.inputs[i]);
    if (!any) return;
    builder_.set_block(op.block);
    builder_.set_name(op.name);
    if (!op.def->gradient) return backpropagate_expansion(op, output_gradients);
    const std::vector<ValueId> gradients =
        op.def->gradient(GradientSite{builder_, op, output_gradients, std::span(wanted.get(), count)});
    CHECK(gradients.size() == count, op.def->name);
    for (size_t i = 0; i < count; ++i) {
      if (wanted[i] && gradients[i].valid()) contribute(op.inputs[i], gradients[i]);
    }
  }

  void backpropagate_expansion(const Op& op, std::span<const ValueId> output_gradients) {
    CHECK(op.def->expand, op.def->name);  // a gradient that ended here would be lost in silence
    const size_t first_op = program_.ops.size();
    const std::vector<ValueId> outputs = op.def->expand(builder_, op.inputs, op.attrs);
    const size_t end_op = program_.ops.size();
    spread_need(first_op, end_op);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (output_gradients[i].valid()) contribute(outputs[i], output_gradients[i]);
    }
    backpropagate(first_op, end_op);
  }

  Program& program_;
  Builder builder_;
  std::vector<bool> needed_;
  std::vector<ValueId> gradients_;  // by value
};

}  // namespace

std::vector<ValueId> differentiate(Program& program, ValueId of, ValueId seed, std::span<const ValueId> wrt) {
  CHECK(program.value(of).type == program.value(seed).type);
  Differentiator differentiator(program, wrt);
  const size_t end_op = program.ops.size();
  differentiator.contribute(of, seed);
  differentiator.backpropagate(0, end_op);
  std::vector<ValueId> gradients;
  for (ValueId id : wrt) gradients.push_back(differentiator.gradient(id));
  return gradients;
}

}  // namespace tenon
