// Chooses the keys that each token attends to (a lightning indexer, arXiv 2512.02556). The score of key s for
// token t is the sum over heads of weights[t, h] * relu(scale * q[t, h] . k[s]); ids [tokens, n] i32 are the
// n largest over the token's own sequence up to itself, in rising order, lower first among equals, then -1
// where there are fewer. q [tokens, heads, dim], k [tokens, 1, dim] of one dtype, weights f32 [tokens,
// heads], sequence_begin [tokens] i32; ids are tokens of the pack. No gradient flows.
//
// index_top_k_paged: q, k_cache [pages, page_tokens, 1, dim], weights, page_table, stream, positions as in
// ops/paged_attention.h; ids are positions in the token's stream, all -1 where the stream is -1.
//
// entry_top_k and entry_top_k_paged: the same among entries alone, the keys at every `stride`-th position of
// a sequence (stride - 1, 2 * stride - 1, ...), each of which stands for the tokens up to it.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& index_top_k_op();
const OpDef& index_top_k_paged_op();
const OpDef& entry_top_k_op();
const OpDef& entry_top_k_paged_op();

ValueId index_top_k(Builder& builder, ValueId q, ValueId k, ValueId weights, ValueId sequence_begin,
                    int64_t n, double scale);

struct PagedIndexInputs {
  ValueId q, k_cache, weights, page_table, stream, positions;
};
ValueId index_top_k_paged(Builder& builder, const PagedIndexInputs& inputs, int64_t n, double scale);

struct EntryOptions {
  int64_t n = 1;
  double scale = 1;
  int64_t stride = 1;
};
ValueId entry_top_k(Builder& builder, ValueId q, ValueId k, ValueId weights, ValueId sequence_begin,
                    const EntryOptions& options);
ValueId entry_top_k_paged(Builder& builder, const PagedIndexInputs& inputs, const EntryOptions& options);

}  // namespace tenon
