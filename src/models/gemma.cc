// Gemma 1 to 3 and VaultGemma: zero-centred norms, scaled embeddings, gated GELU; soft caps and alternating
// windows from 2 on, norms on both sides of each layer in 2 and 3.
#include <cmath>

#include "models/decoder.h"
#include "models/family.h"
#include "models/rope.h"

namespace tenon {
namespace {

DecoderTraits gemma_traits(ConfigReader& config) {
  DecoderTraits traits;
  traits.norm_offset = 1;
  traits.tied = true;
  traits.activation_key = config.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  config.ignore("hidden_act");
  traits.activation = "gelu_pytorch_tanh";
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  return traits;
}

void set_norms_around(DecoderTraits& traits) {
  traits.names.mixer_post_norm = "post_attention_layernorm";
  traits.names.feed_forward_norm = "pre_feedforward_layernorm";
  traits.names.feed_forward_post_norm = "post_feedforward_layernorm";
}

ModelSpec read_scaled(ConfigReader& config, const DecoderTraits& traits) {
  ModelSpec spec = read_decoder(config, traits);
  spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden));
  return spec;
}

void set_attention(ConfigReader& config, ModelSpec& spec) {
  const double scalar = config.number("query_pre_attn_scalar");
  const double softcap = config.number_or("attn_logit_softcapping", 0);
  config.require(scalar > 0, "query_pre_attn_scalar", "must be positive");
  for (BlockSpec& block : spec.blocks) {
    attention_of(block).attend.scale = 1 / std::sqrt(scalar);
    attention_of(block).attend.softcap = softcap;
  }
  spec.logit_softcap = config.number_or("final_logit_softcapping", 0);
  config.require(!config.flag_or("use_bidirectional_attention", false), "use_bidirectional_attention",
                 "is not supported");
}

// Sliding on every layer but each `pattern`-th, where the file lists no kinds.
std::vector<bool> sliding_layers(ConfigReader& config, size_t layers, size_t pattern) {
  std::vector<bool> sliding = layers_of_kind(config, "sliding_attention");
  if (sliding.size() == layers) return sliding;
  sliding.resize(layers);
  for (size_t i = 0; i < layers; ++i) sliding[i] = (i + 1) % pattern != 0;
  return sliding;
}

std::vector<bool> set_sliding(ConfigReader& config, ModelSpec& spec, size_t pattern) {
  const int64_t window = config.positive_or("sliding_window", 4096);
  config.require(config.positive_or("sliding_window_size", window) == window, "sliding_window_size",
                 "is not what sliding_window says");
  const std::vector<bool> sliding = sliding_layers(config, spec.blocks.size(), pattern);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (sliding[i]) attention_of(spec.blocks[i]).attend.window = window;
  }
  return sliding;
}

Result<ModelSpec> read_gemma(ConfigReader& config) {
  return read_scaled(config, gemma_traits(config));
}

Result<ModelSpec> read_gemma2(ConfigReader& config) {
  DecoderTraits traits = gemma_traits(config);
  set_norms_around(traits);
  ModelSpec spec = read_scaled(config, traits);
  set_attention(config, spec);
  set_sliding(config, spec, 2);
  return spec;
}

Result<ModelSpec> read_vaultgemma(ConfigReader& config) {
  DecoderTraits traits = gemma_traits(config);
  traits.names.feed_forward_norm = "pre_feedforward_layernorm";
  ModelSpec spec = read_scaled(config, traits);
  set_attention(config, spec);
  set_sliding(config, spec, 2);
  return spec;
}

Result<ModelSpec> read_gemma3(ConfigReader& config) {
  DecoderTraits traits = gemma_traits(config);
  set_norms_around(traits);
  traits.qk_norm = QkNorm::head;
  if (!config.has("rope_parameters") && !config.has("rope_theta"))
    config.fail(bad_file("there is no rope_theta", config.subject()));
  ModelSpec spec = read_scaled(config, traits);
  set_attention(config, spec);
  const std::vector<bool> sliding =
      set_sliding(config, spec, static_cast<size_t>(config.positive_or("sliding_window_pattern", 6)));
  if (spec.blocks.empty()) return spec;
  const int64_t head_dim = attention_of(spec.blocks[0]).head_dim;
  spec.ropes.push_back(config.has("rope_parameters")
                           ? read_rope(config, {.head_dim = head_dim,
                                                .max_positions = spec.max_positions,
                                                .layer_type = "sliding_attention"})
                           : plain_rope(config.number_or("rope_local_base_freq", 10000), head_dim));
  for (size_t i = 0; i < spec.blocks.size(); ++i) attention_of(spec.blocks[i]).rope = sliding[i] ? 1 : 0;
  return spec;
}

constexpr std::array kGemmaGguf = {GgufLayout{"gemma"}};
constexpr std::array kGemma2Gguf = {GgufLayout{"gemma2"}};
constexpr std::array kGemma3Gguf = {GgufLayout{"gemma3"}};

constexpr Family kFamilies[] = {
    {"gemma", {"gemma"}, kGemmaGguf, read_gemma},
    {"gemma2", {"gemma2"}, kGemma2Gguf, read_gemma2},
    {"gemma3", {"gemma3_text"}, kGemma3Gguf, read_gemma3},
    {"vaultgemma", {"vaultgemma"}, {}, read_vaultgemma},
};

}  // namespace

std::span<const Family> gemma_families() {
  return kFamilies;
}

}  // namespace tenon
