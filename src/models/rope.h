// Reads the rotary embedding of a configuration: the older `rope_theta` with `rope_scaling`, or the newer
// `rope_parameters`.
#pragma once

#include "models/config_reader.h"
#include "models/model_spec.h"

namespace tenon {

// Frequencies for `rotary_dim` elements of a head. Kinds: default, linear (Chen et al. 2023), llama3
// (Llama 3.1's frequency-wise scaling), and per-frequency factors as GGUF files carry them. Another kind is
// reported by name through config.fail().
RopeSpec read_rope(ConfigReader& config, int64_t rotary_dim);

}  // namespace tenon
