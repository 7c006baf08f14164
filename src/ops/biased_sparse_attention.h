// Attention to chosen keys, as ops/sparse_attention.h, with what that op leaves out: ids [tokens, groups, n]
// i32, head h reading the keys of group h / (heads / groups), and, where there are `sinks` f32 [heads], one
// more score of each head whose value is zero (as in ops/biased_attention.h). Inputs q, k, v, ids, then
// sinks; outputs out and lse, sink included. No id stands twice in a row; a token without keys gives zeros.
//
// biased_sparse_attention_grad: q, k, v, ids, out, lse, dout, then sinks; dq, dk, dv and, with sinks, dsinks.
// biased_sparse_paged_attention: q, k_cache, v_cache, page_table, stream, ids, then sinks.
#pragma once

#include "ops/sparse_attention.h"

namespace tenon {

const OpDef& biased_sparse_attention_op();
const OpDef& biased_sparse_attention_grad_op();
const OpDef& biased_sparse_paged_attention_op();

struct BiasedSparseInputs {
  ValueId q, k, v, ids, sinks;  // sinks: invalid where there are none
};
ValueId biased_sparse_attention(Builder& builder, const BiasedSparseInputs& inputs, double scale);
// `inputs` are those of the op.
std::vector<ValueId> biased_sparse_attention_grad(Builder& builder, std::vector<ValueId> inputs, bool sinks,
                                                  double scale);
ValueId biased_sparse_paged_attention(Builder& builder, const SparsePagedInputs& inputs, ValueId sinks,
                                      double scale);

}  // namespace tenon
