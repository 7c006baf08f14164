// What the attention ops share: their shape checks and their scores in double. For ops/ alone.
#pragma once

#include "ops/attention.h"
#include "ops/rules.h"

namespace tenon {

// That q [tokens, heads, head_dim], k and v [..., kv_heads, (v_)head_dim] fit by dtype, heads and head_dim,
// and that the attributes are in range. Their ranks are checked before.
Status check_attention(const OpSite& site, const Type& q, const Type& k, const Type& v);

// The score of one pair of rows, and its derivative by scale * q·k.
struct AttentionScore {
  double value;
  double slope;
};
AttentionScore attention_score(const AttentionOptions& options, const double* q, const double* k,
                               int64_t head_dim);

// The first token that token t attends to.
int64_t attention_begin(const AttentionOptions& options, int64_t sequence_begin, int64_t t);

// Pairs of tokens that attend to each other at most: one sequence of `tokens`.
int64_t attention_pairs(int64_t tokens, int64_t window);

}  // namespace tenon
