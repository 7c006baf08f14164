#include "passes/fuse_addend.h"

#include <unordered_map>
#include <vector>

#include "ops/add.h"
#include "ops/matmul.h"
#include "passes/rewriter.h"

namespace tenon {
namespace {

std::vector<int32_t> use_counts(const Program& program) {
  std::vector<int32_t> uses(program.values.size(), 0);
  for (const Op& op : program.ops) {
    for (ValueId id : op.inputs) ++uses[static_cast<size_t>(id.index)];
  }
  return uses;
}

// The product without an addend at the start of a chain of products that ends in `id`, each used once and of
// one type; invalid where there is none.
OpId open_product(const Program& program, const std::vector<int32_t>& uses, ValueId id) {
  const Type type = program.value(id).type;
  while (true) {
    const Value& value = program.value(id);
    if (!value.producer.valid() || value.type != type || value.role == Role::output) return {};
    if (uses[static_cast<size_t>(id.index)] != 1) return {};
    const Op& op = program.op(value.producer);
    if (op.def != &matmul_op()) return {};
    if (op.inputs.size() == 2) return value.producer;
    id = op.inputs[2];
  }
}

}  // namespace

Program fuse_addend(const Program& program) {
  const std::vector<int32_t> uses = use_counts(program);
  std::unordered_map<int32_t, ValueId> addend_of;  // product -> what is added to it
  std::unordered_map<int32_t, ValueId> same_as;    // addition -> the end of the chain that now includes it
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (op.def != &add_op()) continue;
    for (int side = 1; side >= 0; --side) {
      const ValueId product = op.inputs[static_cast<size_t>(side)];
      const ValueId other = op.inputs[static_cast<size_t>(1 - side)];
      const OpId open = open_product(program, uses, product);
      if (!open.valid() || addend_of.contains(open.index)) continue;
      if (program.value(other).producer.index >= open.index) continue;  // not there yet when the product runs
      addend_of.emplace(open.index, other);
      same_as.emplace(static_cast<int32_t>(i), product);
      break;
    }
  }
  Rewriter rewriter(program);
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (const auto chain = same_as.find(static_cast<int32_t>(i)); chain != same_as.end()) {
      const ValueId end = rewriter.map(chain->second);
      const Value& sum = program.value(op.outputs[0]);
      rewriter.builder().program().value(end).role = sum.role;
      if (sum.role == Role::output) rewriter.builder().mark_output(end, sum.name);
      rewriter.set(op.outputs[0], end);
      continue;
    }
    const auto addend = addend_of.find(static_cast<int32_t>(i));
    if (addend == addend_of.end()) {
      rewriter.copy(op);
      continue;
    }
    Op product = op;
    product.inputs.push_back(addend->second);
    rewriter.copy(product);
  }
  return rewriter.finish();
}

}  // namespace tenon
