#include "passes/fuse_loss_gradient.h"

#include <algorithm>
#include <optional>

#include "ops/linear_cross_entropy.h"
#include "ops/linear_cross_entropy_grad_hidden.h"
#include "ops/linear_cross_entropy_with_grad.h"
#include "passes/rewriter.h"

namespace tenon {
namespace {

struct LossPair {
  size_t loss, gradient;  // ops
};

bool reads_any(const Op& op, const std::vector<ValueId>& values) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](ValueId id) { return std::find(values.begin(), values.end(), id) != values.end(); });
}

// The gradient of the loss op at `loss`, where it is the first and only op that reads its outputs.
std::optional<LossPair> find_gradient(const Program& program, size_t loss) {
  const Op& op = program.ops[loss];
  std::optional<LossPair> pair;
  for (size_t i = loss + 1; i < program.ops.size(); ++i) {
    const Op& reader = program.ops[i];
    if (!reads_any(reader, op.outputs)) continue;
    const bool fits = !pair && reader.def == &linear_cross_entropy_grad_hidden_op() &&
                      std::equal(op.inputs.begin(), op.inputs.end(), reader.inputs.begin()) &&
                      reader.inputs[3] == op.outputs[1] && reader.attrs == op.attrs;
    if (!fits) return std::nullopt;
    pair = LossPair{loss, i};
  }
  return pair;
}

std::optional<LossPair> find_pair(const Program& program) {
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (op.def != &linear_cross_entropy_op() || op.attrs.real("softcap") != 0) continue;
    if (const auto pair = find_gradient(program, i)) return pair;
  }
  return std::nullopt;
}

// Gives a new value the role and name of an old one.
void rename(Rewriter& rewriter, const Program& from, ValueId old, ValueId now) {
  Value& value = rewriter.builder().program().value(now);
  value.role = from.value(old).role;
  value.name = from.value(old).name;
  rewriter.set(old, now);
}

}  // namespace

Program fuse_loss_gradient(const Program& program) {
  const std::optional<LossPair> pair = find_pair(program);
  if (!pair) return program;
  const Op& loss = program.ops[pair->loss];
  Rewriter rewriter(program);
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (i == pair->loss) continue;
    if (i != pair->gradient) {
      rewriter.copy(op);
      continue;
    }
    Builder& b = rewriter.builder();
    b.set_block(op.block);
    b.set_name(op.name);
    const auto in = [&](size_t index) { return rewriter.map(op.inputs[index]); };
    const auto fused =
        linear_cross_entropy_with_grad(b, in(0), in(1), in(2), in(4), linear_cross_entropy_options(op.attrs));
    rename(rewriter, program, op.outputs[0], fused.dhidden);
    rename(rewriter, program, loss.outputs[0], fused.loss);
    rename(rewriter, program, loss.outputs[2], fused.predicted);
  }
  return rewriter.finish();
}

}  // namespace tenon
