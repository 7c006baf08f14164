// What the ops of attention to chosen keys share: their shape rules and references. For ops/ alone.
#pragma once

#include "ops/rules.h"

namespace tenon {

// Where the inputs of such an op stand. ids are [tokens, n], or [tokens, groups, n] where the op is biased;
// sinks are the last input where the attributes have the flag.
struct SparseLayout {
  bool biased = false;
  bool paged = false;
  bool grad = false;

  size_t ids() const { return paged ? 5 : 3; }
  size_t plain() const { return paged ? 6 : grad ? 7 : 4; }  // inputs before the sinks
  bool sinks(const Attrs& attrs) const { return biased && attrs.flag("sinks"); }
};

InferredTypes infer_sparse_attention(const OpSite& site, SparseLayout layout);
Cost sparse_attention_cost(const OpSite& site, SparseLayout layout);
void sparse_attention_reference(const ReferenceCall& call, SparseLayout layout);

template <const SparseLayout& kLayout>
constexpr OpDef sparse_attention_def(std::string_view name, decltype(OpDef::gradient) gradient = nullptr) {
  return {.name = name,
          .infer = [](const OpSite& site) { return infer_sparse_attention(site, kLayout); },
          .gradient = gradient,
          .cost = [](const OpSite& site) { return sparse_attention_cost(site, kLayout); },
          .reference = [](const ReferenceCall& call) { sparse_attention_reference(call, kLayout); }};
}

}  // namespace tenon
