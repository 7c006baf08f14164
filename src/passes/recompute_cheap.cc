#include "passes/recompute_cheap.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "passes/rewriter.h"

namespace tenon {
namespace {

constexpr std::array<std::string_view, 4> kCheapOps = {"activation", "rms_norm", "silu", "swiglu"};

bool is_cheap(const Op& op) {
  return op.outputs.size() == 1 &&
         std::find(kCheapOps.begin(), kCheapOps.end(), op.def->name) != kCheapOps.end();
}

size_t first_backward_op(const Program& program) {
  size_t first = 0;
  while (first < program.ops.size() && program.value(program.ops[first].outputs[0]).role != Role::gradient)
    ++first;
  return first;
}

// The first and the last backward op that reads a value.
struct BackwardUses {
  std::map<ValueId, size_t> first, last;

  BackwardUses(const Program& program, size_t begin) {
    for (size_t i = begin; i < program.ops.size(); ++i) {
      for (ValueId id : program.ops[i].inputs) {
        first.try_emplace(id, i);
        last[id] = i;
      }
    }
  }
  // Whether a value is there at op `at` in any case: it lives for ever, or is read there or later.
  bool keeps(const Program& program, ValueId id, size_t at) const {
    const auto found = last.find(id);
    return !program.value(id).producer.valid() || (found != last.end() && found->second >= at);
  }
};

}  // namespace

Program recompute_cheap(const Program& program) {
  const size_t first_backward = first_backward_op(program);
  const BackwardUses uses(program, first_backward);
  std::map<size_t, std::vector<size_t>> again;  // by backward op, the forward ops to run before it
  for (size_t i = 0; i < first_backward; ++i) {
    const Op& op = program.ops[i];
    const auto used = is_cheap(op) ? uses.first.find(op.outputs[0]) : uses.first.end();
    if (used == uses.first.end()) continue;
    const bool kept = std::all_of(op.inputs.begin(), op.inputs.end(),
                                  [&](ValueId id) { return uses.keeps(program, id, used->second); });
    if (kept) again[used->second].push_back(i);
  }
  Rewriter rewriter(program);
  for (size_t i = 0; i < program.ops.size(); ++i) {
    if (const auto found = again.find(i); found != again.end()) {
      for (size_t forward : found->second) {
        rewriter.set(program.ops[forward].outputs[0], rewriter.clone(program.ops[forward])[0]);
      }
    }
    rewriter.copy(program.ops[i]);
  }
  return rewriter.finish();
}

}  // namespace tenon
