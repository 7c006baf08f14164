#include "passes/recompute.h"

#include <algorithm>
#include <set>
#include <vector>

#include "passes/rewriter.h"

namespace tenon {
namespace {

bool is_backward(const Program& program, const Op& op) {
  return program.value(op.outputs[0]).role == Role::gradient;
}

struct BlockOps {
  std::vector<size_t> again;  // forward ops to run again, in order
  bool done = false;
};

// Forward ops of each block that its backward ops need, directly or through others of the block.
std::vector<BlockOps> ops_to_repeat(const Program& program, int32_t count, size_t first_backward) {
  std::vector<std::set<ValueId>> wanted(static_cast<size_t>(count));
  const auto within = [&](const Op& op) { return op.block >= 0 && op.block < count; };
  for (size_t i = first_backward; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (within(op)) wanted[static_cast<size_t>(op.block)].insert(op.inputs.begin(), op.inputs.end());
  }
  std::vector<BlockOps> blocks(static_cast<size_t>(count));
  for (size_t i = first_backward; i-- > 0;) {
    const Op& op = program.ops[i];
    if (!within(op)) continue;
    std::set<ValueId>& values = wanted[static_cast<size_t>(op.block)];
    const bool used =
        std::any_of(op.outputs.begin(), op.outputs.end(), [&](ValueId id) { return values.contains(id); });
    if (!used) continue;
    values.insert(op.inputs.begin(), op.inputs.end());
    blocks[static_cast<size_t>(op.block)].again.push_back(i);
  }
  for (BlockOps& block : blocks) std::reverse(block.again.begin(), block.again.end());
  return blocks;
}

}  // namespace

int32_t block_count(const Program& program) {
  int32_t count = 0;
  for (const Op& op : program.ops) count = std::max(count, op.block + 1);
  return count;
}

Program recompute_blocks(const Program& program, int32_t count) {
  size_t first_backward = 0;
  while (first_backward < program.ops.size() && !is_backward(program, program.ops[first_backward]))
    ++first_backward;
  std::vector<BlockOps> blocks = ops_to_repeat(program, count, first_backward);
  Rewriter rewriter(program);
  for (size_t i = 0; i < first_backward; ++i) rewriter.copy(program.ops[i]);
  for (size_t i = first_backward; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (op.block < 0 || op.block >= count) {
      rewriter.copy(op);
      continue;
    }
    BlockOps& block = blocks[static_cast<size_t>(op.block)];
    if (!block.done) {
      // From here on the block's values are the second ones. Its output is not among them for the next block:
      // that block's backward ops came before these.
      for (size_t again : block.again) {
        const Op& forward = program.ops[again];
        const std::vector<ValueId> outputs = rewriter.clone(forward);
        for (size_t j = 0; j < outputs.size(); ++j) rewriter.set(forward.outputs[j], outputs[j]);
      }
      block.done = true;
    }
    rewriter.copy(op);
  }
  return rewriter.finish();
}

}  // namespace tenon
