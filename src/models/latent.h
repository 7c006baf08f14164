// Reads decoders of multi-head latent attention (DeepSeek-V2) and their experts.
#pragma once

#include "models/experts.h"

namespace tenon {

// A decoder whose attention is latent in every layer; `interleaved` pairs rotate neighbours.
ModelSpec read_latent_decoder(ConfigReader& config, bool interleaved);

// An indexer in every layer, or by `types`: "full", "shared" (takes over the last choice) or "none".
struct IndexerTraits {
  int32_t rope = 0;
  int64_t rope_from = 0;
  double eps = 1e-6;
  std::vector<std::string> types;
};
void set_indexers(ConfigReader& config, ModelSpec& spec, const IndexerTraits& traits);

// Experts in all layers that are not dense, by DeepSeek's keys.
void set_latent_experts(ConfigReader& config, ModelSpec& spec, const MoeSpec& moe, const ExpertNames& names);

}  // namespace tenon
