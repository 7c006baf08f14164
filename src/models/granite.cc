// Granite 3 and 4 (dense) and HyperCLOVA X: Llama with multipliers on embeddings, residuals, scores and
// logits.
#include <map>

#include "models/decoder.h"
#include "models/family.h"
#include "models/rope.h"

namespace tenon {
namespace {

DecoderTraits granite_traits(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.set_mlp_bias(config.flag_or("mlp_bias", false));
  return traits;
}

void set_multipliers(ConfigReader& config, ModelSpec& spec, bool divides) {
  spec.embedding_scale = config.number_or("embedding_multiplier", 1);
  const double logits = config.number_or("logits_scaling", 1);
  config.require(logits > 0, "logits_scaling", "must be positive");
  spec.logit_scale = divides ? 1 / logits : logits;
  const double residual = config.number_or("residual_multiplier", 1);
  const double attention = config.number_or("attention_multiplier", 1);
  for (BlockSpec& block : spec.blocks) {
    block.residual_scale = residual;
    if (auto* a = std::get_if<AttentionSpec>(&block.mixer)) a->attend.scale = attention;
  }
}

Result<ModelSpec> read_granite(ConfigReader& config) {
  ModelSpec spec = read_decoder(config, granite_traits(config));
  set_multipliers(config, spec, true);
  return spec;
}

Result<ModelSpec> read_granite_swa(ConfigReader& config) {
  ModelSpec spec = read_decoder(config, granite_traits(config));
  set_multipliers(config, spec, true);
  set_windows(spec, read_windows(config));
  const std::vector<double> thetas = config.numbers_or_empty("layer_rope_theta");
  config.require(thetas.size() == spec.blocks.size(), "layer_rope_theta", "must have one entry a layer");
  if (!config.status().ok()) return spec;
  std::map<double, int32_t> ropes;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    a.attend.sinks = "model.layers." + std::to_string(i) + ".self_attn.sinks";
    const auto [at, added] = ropes.emplace(thetas[i], static_cast<int32_t>(spec.ropes.size()));
    a.rope = thetas[i] == 0 ? -1 : at->second;
    if (added) spec.ropes.push_back(plain_rope(thetas[i] == 0 ? 10000 : thetas[i], a.head_dim));
  }
  return spec;
}

Result<ModelSpec> read_hyperclovax(ConfigReader& config) {
  DecoderTraits traits = granite_traits(config);
  if (config.flag_or("use_post_norm", true)) {
    traits.names.mixer_post_norm = "post_norm1";
    traits.names.feed_forward_post_norm = "post_norm2";
  }
  ModelSpec spec = read_decoder(config, traits);
  set_multipliers(config, spec, false);
  return spec;
}

constexpr Family kFamilies[] = {
    {"granite", {"granite"}, {}, read_granite},
    {"granite_swa", {"granite_swa"}, {}, read_granite_swa},
    {"hyperclovax", {"hyperclovax"}, {}, read_hyperclovax},
};

}  // namespace

std::span<const Family> granite_families() {
  return kFamilies;
}

}  // namespace tenon
