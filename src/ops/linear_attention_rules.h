// What linear_attention, its gradient and its cached form share: shape checks, sizes and one step of the
// recurrence in double. For ops/ alone.
#pragma once

#include <vector>

#include "ops/linear_attention.h"
#include "ops/rules.h"

namespace tenon {

Attrs linear_attention_attrs(const LinearAttentionOptions& options);
LinearAttentionOptions linear_attention_options(const Attrs& attrs);

struct LinearAttentionSizes {
  int64_t tokens, key_heads, heads, n, p, decays;  // decays: 1 or n

  explicit LinearAttentionSizes(std::span<const Type> inputs)
      : tokens(inputs[0].shape[0]),
        key_heads(inputs[0].shape[1]),
        heads(inputs[2].shape[1]),
        n(inputs[0].shape[2]),
        p(inputs[2].shape[2]),
        decays(inputs[3].shape[2]) {}

  int64_t key_head(int64_t h) const { return h / (heads / key_heads); }
};

// That q, k, v and log_decay (inputs 0 to 3) and beta (input `beta`, where given) fit; ranks are checked
// before.
Status check_linear_attention(const OpSite& site, size_t beta);

// Operands of one token and head of the reference.
struct LinearAttentionStep {
  const double *q, *k, *v, *log_decay;
  double beta;
};
LinearAttentionStep linear_attention_step(const ReferenceCall& call, const LinearAttentionSizes& s,
                                          const ReferenceTensor* beta, int64_t t, int64_t h);

// Moves the state [n, p] of a head one token on. `decayed` (null: not wanted) gets the state after its decay.
void advance(const LinearAttentionSizes& s, bool delta, const LinearAttentionStep& step, double* state,
             double* decayed);

// scale * S^T q.
void read_out(const LinearAttentionSizes& s, double scale, const double* q, const double* state, double* out);

}  // namespace tenon
