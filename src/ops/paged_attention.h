// Attention of new tokens over paged caches that already hold them. q [tokens, heads, head_dim]; k_cache
// [pages, page_tokens, kv_heads, head_dim], v_cache likewise with v_head_dim, in q's dtype; page_table
// [streams, max_pages] i32 lists each stream's pages in order; stream [tokens] i32 is a token's row there;
// positions [tokens] i32 its position. Token t attends to positions max(0, positions[t] - window + 1) ..
// positions[t] of its stream. Same scores as attention, in the same order of additions for the same positions
// whatever else is in the batch. Output [tokens, heads, v_head_dim]. A token whose stream is -1 gives zeros.
// Entries of page_table past a stream's last page are not read.
#pragma once

#include "ir/builder.h"
#include "ops/attention.h"

namespace tenon {

const OpDef& paged_attention_op();

struct PagedAttentionInputs {
  ValueId q, k_cache, v_cache, page_table, stream, positions;
};
ValueId paged_attention(Builder& builder, const PagedAttentionInputs& inputs,
                        const AttentionOptions& options);

}  // namespace tenon
