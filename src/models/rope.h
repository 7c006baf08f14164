// Reads the rotary embedding of a configuration: the older `rope_theta` with `rope_scaling`, or the newer
// `rope_parameters`.
#pragma once

#include <string_view>

#include "models/config_reader.h"
#include "models/layer_spec.h"
#include "models/model_spec.h"

namespace tenon {

struct RopeSizes {
  int64_t head_dim = 0;
  double rotary = 1;            // part of a head that is rotated, where the configuration does not say
  int64_t max_positions = 0;    // 0: unknown
  bool whole = false;           // all of head_dim is rotated, whatever the configuration says
  std::string_view layer_type;  // of `rope_parameters` by kind of layer; empty: the first of them
};

// Kinds: default, linear (Chen et al. 2023), dynamic (NTK by length), yarn (Peng et al. 2023), longrope (Ding
// et al. 2024), llama3 (Llama 3.1's frequency-wise scaling), proportional (the first pairs of a whole head
// are rotated), and per-frequency factors as GGUF files carry them. Another kind is reported by name through
// config.fail().
RopeSpec read_rope(ConfigReader& config, const RopeSizes& sizes);

// Frequencies without scaling.
RopeSpec plain_rope(double theta, int64_t rotary_dim);

// Whether any frequency depends on how long a sequence is.
bool depends_on_length(const ModelSpec& spec);
// Which frequencies serve a sequence of that length: equal numbers, the same ones. Where frequencies change
// with every token (dynamic) it is the length itself.
int64_t frequency_regime(const ModelSpec& spec, int64_t length);

// yarn's factor on attention scores beyond what the table carries: (0.1 * mscale_all_dim * log(factor) + 1)^2
// (DeepSeek); 1 where the configuration has none.
double yarn_score_factor(ConfigReader& config);

}  // namespace tenon
