// Where decoding keeps keys and values, by layer. A layer whose queries reach back over all positions has the
// pages that a stream's page table names. One that sees a window or a chunk only keeps the last positions, in
// a ring of pages that is each stream's own: position p lies in page (p / page_tokens) % ring. Kernels know
// nothing of it: a ring is a page table whose entries repeat. Pure functions of the model and the cache.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/forward.h"
#include "models/model_spec.h"

namespace tenon {

// Pages of a layer's ring in each stream, or 0 where the layer keeps every position: the least that hold what
// any query of a run may see, where that is less than a whole context.
int64_t ring_pages(const ModelSpec& spec, const CacheOptions& cache, int32_t layer);

// The different rings of a model, in rising order.
std::vector<int64_t> ring_sizes(const ModelSpec& spec, const CacheOptions& cache);

// Caches are called "cache.<layer>.<part>", and with this before the part where they are rings.
inline constexpr std::string_view kRingPart = "ring.";

// kPageTableInput or kSlotsInput of the layers with a ring of that many pages.
std::string ring_input(std::string_view input, int64_t ring);

// What the caller writes there: the table, i32 [streams, max_pages], once; the slot of each token.
std::vector<int32_t> ring_page_table(const CacheOptions& cache, int64_t ring);
int32_t ring_slot(const CacheOptions& cache, int64_t ring, int64_t stream, int64_t position);

}  // namespace tenon
