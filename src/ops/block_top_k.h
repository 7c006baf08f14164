// Chooses blocks of keys for each token and each group of heads (block-sparse attention). Blocks are `block`
// consecutive positions of a sequence; a block's score for a query is its largest q . k among the positions
// up to the query. The token's own block and the `local` - 1 before it are chosen first, then those of the
// largest scores, lower first among equals, until there are n. ids [tokens, groups, n * block] i32 are the
// keys of the chosen blocks up to the token, in rising order, then -1. q [tokens, groups, dim], k [tokens, 1,
// dim] of one dtype, sequence_begin [tokens] i32; ids are tokens of the pack. No gradient flows.
//
// block_top_k_paged: q, k_cache [pages, page_tokens, 1, dim], page_table, stream, positions as in
// ops/paged_attention.h; ids are positions in the token's stream, all -1 where the stream is -1.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& block_top_k_op();
const OpDef& block_top_k_paged_op();

struct BlockTopKOptions {
  int64_t n = 1;
  int64_t block = 1;
  int64_t local = 0;
};
ValueId block_top_k(Builder& builder, ValueId q, ValueId k, ValueId sequence_begin,
                    const BlockTopKOptions& options);

struct PagedBlockInputs {
  ValueId q, k_cache, page_table, stream, positions;
};
ValueId block_top_k_paged(Builder& builder, const PagedBlockInputs& inputs, const BlockTopKOptions& options);

}  // namespace tenon
