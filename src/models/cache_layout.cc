#include "models/cache_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/checked_math.h"

namespace tenon {
namespace {

// Positions that a query sees, itself included; 0: all.
int64_t span_of(const AttendSpec& spec) {
  if (spec.window == 0 || spec.chunk == 0) return std::max(spec.window, spec.chunk);
  return std::min(spec.window, spec.chunk);
}

// The span of a mixer that keeps keys, or nothing.
struct KeptSpan {
  std::optional<int64_t> operator()(const AttentionSpec& a) const {
    const bool chosen = a.indexer || a.value_mask;
    return chosen ? 0 : span_of(a.attend);
  }
  std::optional<int64_t> operator()(const AttentionExpertsSpec& a) const { return span_of(a.attend); }
  std::optional<int64_t> operator()(const RelativeAttentionSpec& a) const { return span_of(a.attend); }
  std::optional<int64_t> operator()(const LatentAttentionSpec& a) const {
    const bool chosen = a.indexer || a.indices_from >= 0;
    return chosen ? 0 : span_of(a.attend);
  }
  template <typename Other>
  std::optional<int64_t> operator()(const Other&) const {
    return std::nullopt;
  }
};

bool reads_keys_of(const BlockSpec& block, int32_t layer) {
  const auto* a = std::get_if<AttentionSpec>(&block.mixer);
  return a && a->kv_from == layer;
}

// The longest span of all that read a layer's keys; 0: all positions, or no keys.
int64_t layer_span(const ModelSpec& spec, int32_t layer) {
  const BlockSpec& own = spec.blocks[static_cast<size_t>(layer)];
  std::vector<int64_t> spans;
  const auto add = [&spans](const std::optional<int64_t>& span) {
    if (span) spans.push_back(*span);
  };
  add(std::visit(KeptSpan(), own.mixer));
  add(std::visit(KeptSpan(), own.beside));
  if (own.shared) add(span_of(own.shared->attention.attend));
  for (const BlockSpec& block : spec.blocks) {
    if (reads_keys_of(block, layer)) add(std::visit(KeptSpan(), block.mixer));
  }
  if (spans.empty() || std::ranges::find(spans, 0) != spans.end()) return 0;
  return std::ranges::max(spans);
}

}  // namespace

int64_t ring_pages(const ModelSpec& spec, const CacheOptions& cache, int32_t layer) {
  const int64_t span = layer_span(spec, layer);
  if (span == 0 || span >= cache.max_pages * cache.page_tokens) return 0;
  const int64_t ring = ceil_div(span - 1 + cache.run_tokens, cache.page_tokens);
  return ring < cache.max_pages ? ring : 0;
}

std::vector<int64_t> ring_sizes(const ModelSpec& spec, const CacheOptions& cache) {
  std::set<int64_t> sizes;
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    sizes.insert(ring_pages(spec, cache, static_cast<int32_t>(layer)));
  }
  sizes.erase(0);
  return {sizes.begin(), sizes.end()};
}

std::string ring_input(std::string_view input, int64_t ring) {
  return fmt::format("{}.ring_{}", input, ring);
}

std::vector<int32_t> ring_page_table(const CacheOptions& cache, int64_t ring) {
  std::vector<int32_t> table;
  for (int64_t stream = 0; stream < cache.streams; ++stream) {
    for (int64_t page = 0; page < cache.max_pages; ++page)
      table.push_back(static_cast<int32_t>(stream * ring + page % ring));
  }
  return table;
}

int32_t ring_slot(const CacheOptions& cache, int64_t ring, int64_t stream, int64_t position) {
  const int64_t page = stream * ring + position / cache.page_tokens % ring;
  return static_cast<int32_t>(page * cache.page_tokens + position % cache.page_tokens);
}

}  // namespace tenon
