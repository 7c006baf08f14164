// Attention of each token to the keys that ids name, scores never materialised. q [tokens, heads, head_dim],
// k [tokens, kv_heads, head_dim], v [tokens, kv_heads, v_head_dim] of one dtype; ids [tokens, n] i32 are
// tokens, none twice, -1: none; head h reads kv head h / (heads / kv_heads). out [tokens, heads, v_head_dim]
// in q's dtype, and lse [tokens, heads] f32; a token without keys gives zeros. A gradient flows from out
// alone. Cost follows n, not the sequence.
//
// sparse_attention_grad: q, k, v, ids, out, lse, dout to dq, dk, dv. sparse_paged_attention: q, k_cache,
// v_cache, page_table, stream, ids as in ops/paged_attention.h; ids are positions in the token's stream.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& sparse_attention_op();
const OpDef& sparse_attention_grad_op();
const OpDef& sparse_paged_attention_op();

ValueId sparse_attention(Builder& builder, ValueId q, ValueId k, ValueId v, ValueId ids, double scale);
// dq, dk, dv.
std::vector<ValueId> sparse_attention_grad(Builder& builder, std::vector<ValueId> inputs, double scale);

struct SparsePagedInputs {
  ValueId q, k_cache, v_cache, page_table, stream, ids;
};
ValueId sparse_paged_attention(Builder& builder, const SparsePagedInputs& inputs, double scale);

}  // namespace tenon
