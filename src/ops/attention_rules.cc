#include "ops/attention_rules.h"

#include <algorithm>
#include <cmath>

namespace tenon {

Attrs attention_attrs(const AttentionOptions& options) {
  return {{"scale", options.scale}, {"window", options.window}, {"softcap", options.softcap}};
}

AttentionOptions attention_options(const Attrs& attrs) {
  return {.scale = attrs.real("scale"), .window = attrs.integer("window"), .softcap = attrs.real("softcap")};
}

Status check_attention(const OpSite& site, const Type& q, const Type& k, const Type& v) {
  const int64_t heads = q.shape[1], kv_heads = k.shape[-2];
  RETURN_IF_ERROR(
      expect(site, q.dtype == k.dtype && q.dtype == v.dtype, "queries, keys and values differ in dtype"));
  RETURN_IF_ERROR(expect_extent(site, "head_dim of the keys", k.shape[-1], q.shape[2]));
  RETURN_IF_ERROR(expect_extent(site, "kv_heads of the values", v.shape[-2], kv_heads));
  RETURN_IF_ERROR(expect(site, kv_heads > 0 && heads % kv_heads == 0, "heads is not a multiple of kv_heads"));
  const AttentionOptions options = attention_options(site.attrs);
  RETURN_IF_ERROR(expect(site, options.window >= 0, "window is negative"));
  return expect(site, options.softcap >= 0, "softcap is negative");
}

AttentionScore attention_score(const AttentionOptions& options, const double* q, const double* k,
                               int64_t head_dim) {
  double dot = 0;
  for (int64_t i = 0; i < head_dim; ++i) dot += q[i] * k[i];
  const double score = options.scale * dot;
  if (options.softcap == 0) return {score, 1.0};
  const double squashed = std::tanh(score / options.softcap);
  return {options.softcap * squashed, 1 - squashed * squashed};
}

int64_t attention_begin(const AttentionOptions& options, int64_t sequence_begin, int64_t t) {
  return options.window > 0 ? std::max(sequence_begin, t - options.window + 1) : sequence_begin;
}

int64_t attention_pairs(int64_t tokens, int64_t window) {
  const int64_t width = window > 0 ? std::min(window, tokens) : tokens;
  return width * (width + 1) / 2 + (tokens - width) * width;
}

}  // namespace tenon
