// Attention over packed sequences, as ops/attention.h, with what that op leaves out: sinks, chunks, ALiBi and
// learned relative positions. Inputs q, k, v, sequence_begin, then those that there are of `sinks` [heads] or
// [tokens, heads] and `slopes` [heads], f32, and `relative` [tokens, heads, extent] in q's dtype. A sink is
// one more score of its head (or of its head and token), whose value is zero (Xiao et al. 2023). relative[t,
// h, d] is added to the score of the key d positions before t, for d < extent. With chunk > 0 a token sees
// only its own chunk of the sequence (positions from chunk * floor(p / chunk) on). ALiBi (Press et al. 2021)
// adds alibi_scale * slope * j to the score of the key at position j of its sequence, the product first
// rounded to bf16 where alibi is `bf16`. Outputs out and lse, sink included. No gradient flows to slopes.
//
// biased_attention_grad: q, k, v, sequence_begin, out, lse, dout, then the biases; outputs dq, dk, dv and,
// with those inputs, dsinks and drelative. biased_paged_attention: as ops/paged_attention.h, then the biases.
#pragma once

#include "ir/builder.h"
#include "ops/attention.h"
#include "ops/paged_attention.h"

namespace tenon {

const OpDef& biased_attention_op();
const OpDef& biased_attention_grad_op();
const OpDef& biased_paged_attention_op();

enum class Alibi : uint8_t { none, plain, bf16 };

struct BiasedAttentionOptions : AttentionOptions {
  int64_t chunk = 0;
  Alibi alibi = Alibi::none;
  double alibi_scale = 1.0;
};

// Each invalid where the attention has none.
struct AttentionBiases {
  ValueId sinks, slopes, relative;
};

AttentionOutputs biased_attention(Builder& builder, ValueId q, ValueId k, ValueId v, ValueId sequence_begin,
                                  const AttentionBiases& biases, const BiasedAttentionOptions& options);
// `inputs` are those of the op, biases included. dq, dk, dv and, with those, dsinks and drelative.
std::vector<ValueId> biased_attention_grad(Builder& builder, std::vector<ValueId> inputs,
                                           const AttentionBiases& biases,
                                           const BiasedAttentionOptions& options);
ValueId biased_paged_attention(Builder& builder, const PagedAttentionInputs& inputs,
                               const AttentionBiases& biases, const BiasedAttentionOptions& options);

}  // namespace tenon
