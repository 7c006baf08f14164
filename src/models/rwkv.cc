// RWKV-4: time mixing and channel mixing in place of attention and MLP.
#include "models/decoder.h"
#include "models/family.h"

namespace tenon {
namespace {

TimeMixSpec time_mix(const std::string& path, int64_t hidden, int64_t channels) {
  TimeMixSpec out;
  out.path = path;
  out.key = {path + ".key", hidden, channels};
  out.value = {path + ".value", hidden, channels};
  out.receptance = {path + ".receptance", hidden, channels};
  out.out = {path + ".output", channels, hidden};
  return out;
}

ChannelMixSpec channel_mix(const std::string& path, int64_t hidden, int64_t width) {
  ChannelMixSpec out;
  out.path = path;
  out.key = {path + ".key", hidden, width};
  out.value = {path + ".value", width, hidden};
  out.receptance = {path + ".receptance", hidden, hidden};
  return out;
}

Result<ModelSpec> read_rwkv(ConfigReader& config) {
  DecoderTraits traits;
  traits.names.embedding = "rwkv.embeddings";
  traits.names.layers = "rwkv.blocks";
  traits.names.final_norm = "rwkv.ln_out";
  traits.names.head = "head";
  traits.names.mixer_norm = "ln1";
  traits.names.feed_forward_norm = "ln2";
  traits.norm = NormKind::layer;
  traits.norm_bias = true;
  traits.eps_key = "layer_norm_epsilon";
  traits.eps = 1e-5;
  traits.rope = false;
  config.suppose("num_attention_heads", 1);
  const int64_t hidden = config.positive("hidden_size");
  traits.intermediate = 4 * hidden;
  ModelSpec spec = read_decoder(config, traits);
  const int64_t channels = config.positive_or("attention_hidden_size", hidden);
  const int64_t width = config.positive_or("intermediate_size", traits.intermediate);
  // How long the sequences of training were; the state has no end.
  config.ignore("context_length");
  // In inference alone the reference halves the stream every so many layers, and what they add to it, so that
  // float16 holds it. Only the epsilon of the norms notices; here a model is served as it is trained.
  config.ignore("rescale_every");
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    const std::string layer = layer_path(traits, i);
    spec.blocks[i].mixer = time_mix(layer + ".attention", hidden, channels);
    spec.blocks[i].feed_forward = channel_mix(layer + ".feed_forward", hidden, width);
  }
  spec.embedding_norm = spec.final_norm;
  spec.embedding_norm.path = layer_path(traits, 0) + ".pre_ln";
  return spec;
}

constexpr Family kFamilies[] = {
    {"rwkv", {"rwkv"}, {}, read_rwkv},
};

}  // namespace

std::span<const Family> rwkv_families() {
  return kFamilies;
}

}  // namespace tenon
