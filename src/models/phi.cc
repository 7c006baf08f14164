// Phi 1 and 2 (parallel, LayerNorm, partial rotary) and Phi 3 and 4 (Llama with fused projections, longrope).
#include "models/decoder.h"
#include "models/family.h"

namespace tenon {
namespace {

Result<ModelSpec> read_phi3(ConfigReader& config) {
  DecoderTraits traits;
  traits.names.qkv = "qkv_proj";
  traits.names.gate_up = "gate_up_proj";
  const bool bias = config.flag_or("attention_bias", false);
  config.require(!bias, "attention_bias", "is not known to be true here");
  ModelSpec spec = read_decoder(config, traits);
  config.ignore("original_max_position_embeddings");
  set_windows(spec, read_windows(config));
  return spec;
}

Result<ModelSpec> read_phi(ConfigReader& config) {
  DecoderTraits traits;
  traits.norm = NormKind::layer;
  traits.norm_bias = true;
  traits.eps_key = "layer_norm_eps";
  traits.activation = "gelu_new";
  traits.gated = false;
  traits.parallel = true;
  traits.set_qkv_bias(true);
  traits.o_bias = true;
  traits.set_mlp_bias(true);
  traits.rotary = 0.5;
  traits.names.o = "dense";
  traits.names.up = "fc1";
  traits.names.down = "fc2";
  traits.names.feed_forward_norm = "";
  traits.names.final_norm = "model.final_layernorm";
  ModelSpec spec = read_decoder(config, traits);
  spec.head.bias = true;
  spec.stored = head_with_bias(spec);
  const bool qk_norm = config.flag_or("qk_layernorm", false);
  for (size_t i = 0; qk_norm && i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    a.q_norm = spec.final_norm;
    a.q_norm.width = a.head_dim;
    a.k_norm = a.q_norm;
    a.q_norm.path = layer_path(traits, i) + ".self_attn.q_layernorm";
    a.k_norm.path = layer_path(traits, i) + ".self_attn.k_layernorm";
  }
  return spec;
}

constexpr std::array kPhi2Gguf = {GgufLayout{"phi2"}};
constexpr std::array kPhi3Gguf = {GgufLayout{"phi3"}};

constexpr Family kFamilies[] = {
    {"phi3", {"phi3"}, kPhi3Gguf, read_phi3},
    {"phi", {"phi"}, kPhi2Gguf, read_phi},
};

}  // namespace

std::span<const Family> phi_families() {
  return kFamilies;
}

}  // namespace tenon
