// What the Inkling families share: attention with learned relative positions, convolutions around layers, and
// a head that is narrower than the file's. For models/ alone.
#pragma once

#include <string>
#include <vector>

#include "models/attention_spec.h"
#include "models/config_reader.h"
#include "models/layer_spec.h"
#include "models/model_spec.h"

namespace tenon {

// Sizes, window and scaling by length of one kind of layer; paths and norms are the family's.
RelativeAttentionSpec read_relative_attention(ConfigReader& config, bool sliding);
// Which layers slide, by `layer_types`; where it is absent, all that `full_every` does not divide.
std::vector<bool> read_sliding_layers(ConfigReader& config, int64_t full_every);
int64_t read_taps(ConfigReader& config);
// A convolution of `channels` under `path`, added to its input, times `scale`.
ResidualConvSpec residual_conv(std::string path, int64_t channels, int64_t taps, double scale);
// Rows of the embedding and the head past `unpadded_vocab_size` stand for no token, and are not read.
void set_unpadded_vocabulary(ConfigReader& config, ModelSpec& spec, const std::string& embedding_tensor,
                             const std::string& head_tensor);

}  // namespace tenon
