// Copies a Program op by op into a new one, so that a pass is a loop that says only what it changes.
#pragma once

#include <vector>

#include "ir/builder.h"
#include "ir/program.h"

namespace tenon {

class Rewriter {
 public:
  // Starts a new program with the statics and constants of `from`, which must outlive the rewriter.
  explicit Rewriter(const Program& from);

  Builder& builder() { return builder_; }

  // The new value that stands for an old one; CHECKs that there is one.
  ValueId map(ValueId old) const;
  void set(ValueId old, ValueId now) { map_[static_cast<size_t>(old.index)] = now; }

  // Appends a copy of an op of `from`: mapped inputs, same roles, names and block. set()s its outputs.
  void copy(const Op& op);
  // The same, but the outputs are returned and nothing is set: a second run of the op.
  std::vector<ValueId> clone(const Op& op);

  // The new program. The rewriter is spent.
  Program finish();

 private:
  std::vector<ValueId> emit(const Op& op);

  const Program& from_;
  Program to_;
  Builder builder_;
  std::vector<ValueId> map_;
};

}  // namespace tenon
