// Command R (cohere: parallel block, LayerNorm without bias, interleaved rope, scaled logits), R7B and A
// (cohere2: rope on sliding layers alone) and Compass.
#include "models/decoder.h"
#include "models/family.h"

namespace tenon {
namespace {

DecoderTraits cohere_traits(ConfigReader& config) {
  DecoderTraits traits;
  traits.norm = NormKind::layer;
  traits.eps_key = "layer_norm_eps";
  traits.interleaved = true;
  traits.parallel = true;
  traits.tied = true;
  traits.names.feed_forward_norm = "";
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  return traits;
}

Result<ModelSpec> read_cohere(ConfigReader& config) {
  const DecoderTraits traits = cohere_traits(config);
  ModelSpec spec = read_decoder(config, traits);
  spec.logit_scale = config.number_or("logit_scale", 0.0625);
  const bool qk_norm = config.flag_or("use_qk_norm", false);
  for (size_t i = 0; qk_norm && i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    a.q_norm = spec.final_norm;
    a.q_norm.width = a.head_dim;
    a.k_norm = a.q_norm;
    a.q_norm.path = layer_path(traits, i) + ".self_attn.q_norm";
    a.k_norm.path = layer_path(traits, i) + ".self_attn.k_norm";
    a.q_norm.heads = a.heads;
    a.k_norm.heads = a.kv_heads;
  }
  return spec;
}

Result<ModelSpec> read_cohere2(ConfigReader& config) {
  ModelSpec spec = read_decoder(config, cohere_traits(config));
  spec.logit_scale = config.number_or("logit_scale", 0.0625);
  const std::vector<int64_t> windows = read_windows(config);
  set_windows(spec, windows);
  for (size_t i = 0; i < spec.blocks.size(); ++i) attention_of(spec.blocks[i]).rope = windows[i] > 0 ? 0 : -1;
  return spec;
}

Result<ModelSpec> read_compass(ConfigReader& config) {
  ASSIGN_OR_RETURN(ModelSpec spec, read_cohere2(config));
  for (RopeSpec& rope : spec.ropes) rope.interleaved = false;
  return spec;
}

constexpr std::array kCommandRGguf = {GgufLayout{"command-r"}};
constexpr std::array kCohere2Gguf = {GgufLayout{"cohere2"}};

constexpr Family kFamilies[] = {
    {"cohere", {"cohere"}, kCommandRGguf, read_cohere},
    {"cohere2", {"cohere2"}, kCohere2Gguf, read_cohere2},
    {"cohere_compass", {"cohere_compass_text"}, {}, read_compass},
};

}  // namespace

std::span<const Family> cohere_families() {
  return kFamilies;
}

}  // namespace tenon
