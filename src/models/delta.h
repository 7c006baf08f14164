// What families of the delta rule share in their files.
#pragma once

#include <string>

#include "models/decoder.h"

namespace tenon {

// The convolution of q, k and v is one module, and three tensors below `path` in the file, wherever they are
// cut.
void split_stored_conv(ModelSpec& spec, const DeltaSpec& delta, const std::string& path);

// What Qwen's hybrids share, and their decoder: gated delta layers and gated attention. Qwen3-Next fuses the
// projections of the delta rule by key head; later ones have them apart.
DecoderTraits qwen_hybrid_traits(ConfigReader& config);
ModelSpec read_qwen_hybrid(ConfigReader& config, const DecoderTraits& traits, bool fused);

}  // namespace tenon
