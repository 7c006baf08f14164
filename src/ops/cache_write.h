// Writes rows [tokens, heads, dim] into a paged cache [pages, page_tokens, heads, dim] of the same dtype at
// slots [tokens] i32 (slot = page * page_tokens + offset, each at most once; -1: not written). The output is
// the cache, updated in place.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& cache_write_op();
ValueId cache_write(Builder& builder, ValueId cache, ValueId rows, ValueId slots);

}  // namespace tenon
