// Where a position of a stream lies in a paged cache, in the references. For ops/ alone.
#pragma once

#include "ir/op_def.h"

namespace tenon {

// The slot, in tokens, of a cache [pages, page_tokens, ...] by a page table [streams, max_pages].
inline int64_t page_slot(const ReferenceTensor& cache, const ReferenceTensor& table, int64_t stream,
                         int64_t position) {
  const int64_t page_tokens = cache.type.shape[1], most = table.type.shape[1];
  CHECK(stream < table.type.shape[0] && position / page_tokens < most,
        "a position is outside the page table");
  const auto page = static_cast<int64_t>(table.data[stream * most + position / page_tokens]);
  CHECK(page >= 0 && page < cache.type.shape[0], "a page is outside the cache");
  return page * page_tokens + position % page_tokens;
}

}  // namespace tenon
