// What the biased attention ops share: which keys a query sees and what is added to its scores. For ops/
// alone.
#pragma once

#include "ops/attention_rules.h"
#include "ops/biased_attention.h"

namespace tenon {

Attrs biased_attention_attrs(const AttentionBiases& biases, const BiasedAttentionOptions& options);
BiasedAttentionOptions biased_attention_options(const Attrs& attrs);

// The biases after the first `first` inputs of a site or call: their checks, and their data.
Status check_biases(const OpSite& site, size_t first);
struct BiasData {
  const double* sinks = nullptr;
  const double* slopes = nullptr;
  const double* relative = nullptr;
  bool sinks_by_token = false;
  int64_t heads = 0, extent = 0;

  int64_t sink_index(int64_t t, int64_t head) const { return (sinks_by_token ? t * heads : 0) + head; }
};
BiasData bias_data(const ReferenceCall& call, size_t first);
std::vector<ValueId> with_biases(std::vector<ValueId> inputs, const AttentionBiases& biases);
AttentionBiases biases_of(const Attrs& attrs, const std::vector<ValueId>& inputs, size_t first);

// The first position that position p of its sequence sees, and what is added to the score of the key at j of
// token t at position p.
int64_t first_seen(const BiasedAttentionOptions& options, int64_t p);
double position_bias(const BiasedAttentionOptions& options, const BiasData& data, int64_t t, int64_t head,
                     int64_t p, int64_t j);

}  // namespace tenon
