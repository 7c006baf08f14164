#include "passes/fuse_low_rank.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ops/matmul.h"
#include "ops/matmul_low_rank.h"
#include "passes/rewriter.h"

namespace tenon {
namespace {

constexpr int64_t kFewestRows = 64;
constexpr int64_t kHighestRank = 256;  // beyond it the second product is as large as others

bool is_plain(const Op& op) {
  return op.def == &matmul_op() && !op.attrs.flag("trans_a");
}

int64_t depth(const Program& program, const Op& op) {
  return program.value(op.inputs[0]).type.shape[1];
}

// The two products of a sum: `base` of the larger depth and `branch` of the smaller, and what the first of
// them in the program had as addend.
struct Sum {
  const Op* base;
  const Op* branch;
  ValueId addend;  // invalid: none
};

class Finder {
 public:
  explicit Finder(const Program& program) : program_(program), uses_(program.values.size(), 0) {
    for (const Op& op : program.ops) {
      for (ValueId id : op.inputs) ++uses_[static_cast<size_t>(id.index)];
    }
  }

  // By the index of the second op; the first one is in `gone`.
  std::unordered_map<size_t, Sum> sums;
  std::unordered_set<size_t> gone;

  void find() {
    for (size_t i = 0; i < program_.ops.size(); ++i) consider(i);
  }

 private:
  void consider(size_t index) {
    const Op& second = program_.ops[index];
    if (!is_plain(second) || second.inputs.size() != 3) return;
    const ValueId between = second.inputs[2];
    const Value& value = program_.value(between);
    if (!value.producer.valid() || value.role == Role::output ||
        uses_[static_cast<size_t>(between.index)] != 1)
      return;
    const auto first_index = static_cast<size_t>(value.producer.index);
    const Op& first = program_.ops[first_index];
    if (!is_plain(first) || sums.contains(first_index)) return;
    const Type& out = program_.value(second.outputs[0]).type;
    if (value.type != out || out.shape[0] < kFewestRows) return;
    if (first.attrs.flag("trans_b") != second.attrs.flag("trans_b")) return;
    const bool second_is_base = depth(program_, second) > depth(program_, first);
    const Sum sum{second_is_base ? &second : &first, second_is_base ? &first : &second,
                  first.inputs.size() == 3 ? first.inputs[2] : ValueId{}};
    if (sum.base->attrs.real("alpha") != 1.0 || depth(program_, *sum.branch) > kHighestRank) return;
    sums.emplace(index, sum);
    gone.insert(first_index);
  }

  const Program& program_;
  std::vector<int32_t> uses_;
};

}  // namespace

Program fuse_low_rank(const Program& program) {
  Finder finder(program);
  finder.find();
  Rewriter rewriter(program);
  Builder& b = rewriter.builder();
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (finder.gone.contains(i)) continue;
    const auto found = finder.sums.find(i);
    if (found == finder.sums.end()) {
      rewriter.copy(op);
      continue;
    }
    const Sum& sum = found->second;
    const auto in = [&](const Op& from, size_t index) { return rewriter.map(from.inputs[index]); };
    b.set_block(op.block);
    b.set_name(sum.base->name);
    const MatmulLowRankInputs inputs{in(*sum.base, 0), in(*sum.base, 1), in(*sum.branch, 0),
                                     in(*sum.branch, 1),
                                     sum.addend.valid() ? rewriter.map(sum.addend) : ValueId{}};
    const ValueId out = matmul_low_rank(b, inputs,
                                        {.trans_b = op.attrs.flag("trans_b"),
                                         .alpha = sum.branch->attrs.real("alpha"),
                                         .out_dtype = op.attrs.dtype("out_dtype")});
    Value& now = b.program().value(out);
    now.role = program.value(op.outputs[0]).role;
    now.name = program.value(op.outputs[0]).name;
    rewriter.set(op.outputs[0], out);
  }
  return rewriter.finish();
}

}  // namespace tenon
