#include "passes/expand_ops.h"

#include <vector>

#include "ir/op_def.h"
#include "passes/rewriter.h"

namespace tenon {
namespace {

void expand(Rewriter& rewriter, const Program& program, const Op& op) {
  Builder& b = rewriter.builder();
  b.set_block(op.block);
  b.set_name(op.name);
  const bool backward = program.value(op.outputs[0]).role == Role::gradient;
  b.set_role(backward ? Role::gradient : Role::activation);
  std::vector<ValueId> inputs;
  for (ValueId id : op.inputs) inputs.push_back(rewriter.map(id));
  const std::vector<ValueId> outputs = op.def->expand(b, inputs, op.attrs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value& old = program.value(op.outputs[i]);
    Value& now = b.program().value(outputs[i]);
    now.role = old.role;
    now.name = old.name;
    rewriter.set(op.outputs[i], outputs[i]);
  }
}

}  // namespace

Program expand_ops(const Program& program, FunctionRef<bool(std::string_view op)> has_kernel) {
  Rewriter rewriter(program);
  for (const Op& op : program.ops) {
    if (op.def->expand == nullptr || has_kernel(op.def->name)) {
      rewriter.copy(op);
    } else {
      expand(rewriter, program, op);
    }
  }
  return rewriter.finish();
}

}  // namespace tenon
