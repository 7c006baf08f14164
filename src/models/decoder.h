// The plain decoder that most families are: pre-norm blocks of rotary attention and a gated MLP. A family
// that differs in values fills in DecoderTraits and lets this read the rest.
#pragma once

#include "models/config_reader.h"
#include "models/model_spec.h"

namespace tenon {

struct DecoderTraits {
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;  // RMSNorm over each head of q and k
  // Keys a query of this layer sees (0: all), by layer; empty: no layer has a window.
  std::vector<int64_t> windows;
};

// Reads sizes, norms, rope and head from the usual keys (hidden_size, num_hidden_layers, num_attention_heads,
// ...). Contradictory sizes are reported through config.fail().
ModelSpec read_decoder(ConfigReader& config, const DecoderTraits& traits);

// The window of each layer from `sliding_window`, `layer_types` or, in older files, `max_window_layers`;
// zeros where `use_sliding_window` is false.
std::vector<int64_t> read_windows(ConfigReader& config);

}  // namespace tenon
