// Attention through a state that decays, over packed sequences. For every head a state S [N, P] is zero
// before the sequence's first token; then, with a = exp(log_decay) and b = beta (1 where there is none),
//   plain:  S = a * S + k (b * v)^T            (Katharopoulos et al. 2020; state-space duality, Dao and Gu
//   2024) delta:  S = a * S; S = S + k (b * (v - S^T k))^T   (gated delta rule, Yang et al. 2024) out = scale
//   * S^T q.
// q and k [tokens, key_heads, N], v [tokens, heads, P], all of one dtype; head h reads key head h / (heads /
// key_heads). log_decay f32 [tokens, heads, 1], or [tokens, heads, N] for a decay of each key
// channel. sequence_begin [tokens] i32; beta f32 [tokens, heads], optional. Outputs: out [tokens,
// heads, P] in v's dtype, and states f32 [ceil(tokens / chunk), heads, N, P], the state before each chunk's
// first token, from which the gradient computes the others again: memory is linear in tokens. A gradient
// flows from out alone.
//
// linear_attention_grad: q, k, v, log_decay, sequence_begin, states, dout and beta to dq, dk, dv, dlog_decay
// and, with beta, dbeta. linear_attention_cached, for new tokens of streams: q, k, v, log_decay, state f32
// [streams, heads, N, P], stream and positions [tokens] i32, beta; outputs out, and the state updated in
// place. A token at position 0 begins anew; one whose stream is -1 gives zeros.
#pragma once

#include "ir/builder.h"
#include "ops/causal_conv.h"

namespace tenon {

const OpDef& linear_attention_op();
const OpDef& linear_attention_cached_op();
const OpDef& linear_attention_grad_op();

struct LinearAttentionOptions {
  double scale = 1.0;
  bool delta = false;
  int64_t chunk = 64;
};

struct LinearAttentionInputs {
  ValueId q, k, v, log_decay, beta;  // beta: invalid where there is none
};
ValueId linear_attention(Builder& builder, const LinearAttentionInputs& inputs, ValueId sequence_begin,
                         const LinearAttentionOptions& options);
ValueId linear_attention_cached(Builder& builder, const LinearAttentionInputs& inputs,
                                const StreamInputs& streams, const LinearAttentionOptions& options);
// dq, dk, dv, dlog_decay and, with beta, dbeta.
std::vector<ValueId> linear_attention_grad(Builder& builder, const LinearAttentionInputs& inputs,
                                           ValueId sequence_begin, ValueId states, ValueId dout,
                                           const LinearAttentionOptions& options);

}  // namespace tenon
