// Causal attention over packed sequences, scores never materialised. q [tokens, heads, head_dim], k [tokens,
// kv_heads, head_dim], v [tokens, kv_heads, v_head_dim], all of one dtype; head h reads kv head
// h / (heads / kv_heads). sequence_begin [tokens] i32 is the index of the first token of each token's
// sequence: token t attends to max(sequence_begin[t], t - window + 1) .. t (window 0: no limit). score =
// softcap(scale * q·k), softcap(s) = cap * tanh(s / cap) where cap > 0. Outputs: out [tokens, heads,
// v_head_dim] in q's dtype and lse [tokens, heads] f32, the log of the softmax's sum. A gradient flows from
// out alone.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& attention_op();

// The attributes of attention, attention_grad and paged_attention, by these names.
struct AttentionOptions {
  double scale = 1.0;
  int64_t window = 0;
  double softcap = 0.0;
};
Attrs attention_attrs(const AttentionOptions& options);
AttentionOptions attention_options(const Attrs& attrs);

struct AttentionOutputs {
  ValueId out;
  ValueId lse;
};
AttentionOutputs attention(Builder& builder, ValueId q, ValueId k, ValueId v, ValueId sequence_begin,
                           const AttentionOptions& options);

}  // namespace tenon
