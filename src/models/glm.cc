// GLM 4 (glm: GLM-4-9B; glm4: 0414, with norms after each layer): half of each head rotated, interleaved.
#include "models/decoder.h"
#include "models/family.h"

namespace tenon {
namespace {

DecoderTraits glm_traits(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.names.gate_up = "gate_up_proj";
  traits.rotary = 0.5;
  traits.interleaved = true;
  return traits;
}

Result<ModelSpec> read_glm(ConfigReader& config) {
  return read_decoder(config, glm_traits(config));
}

Result<ModelSpec> read_glm4(ConfigReader& config) {
  DecoderTraits traits = glm_traits(config);
  traits.names.mixer_post_norm = "post_self_attn_layernorm";
  traits.names.feed_forward_post_norm = "post_mlp_layernorm";
  return read_decoder(config, traits);
}

constexpr std::array kGlm4Gguf = {GgufLayout{"glm4"}};

constexpr Family kFamilies[] = {
    {"glm", {"glm"}, {}, read_glm},
    {"glm4", {"glm4"}, kGlm4Gguf, read_glm4},
};

}  // namespace

std::span<const Family> glm_families() {
  return kFamilies;
}

}  // namespace tenon
