// Reads decoders of multi-head latent attention (DeepSeek-V2) and their experts.
#pragma once

#include "models/experts.h"

namespace tenon {

// A decoder whose attention is latent in every layer; `interleaved` pairs rotate neighbours.
ModelSpec read_latent_decoder(ConfigReader& config, bool interleaved);

// Experts in all layers that are not dense, by DeepSeek's keys.
void set_latent_experts(ConfigReader& config, ModelSpec& spec, const MoeSpec& moe, const ExpertNames& names);

}  // namespace tenon
