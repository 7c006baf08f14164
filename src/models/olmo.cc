// OLMo 1 (LayerNorm without weights), 2 (norms after each layer, q and k normed over their whole width) and 3
// (the same with windows).
#include "models/decoder.h"
#include "models/family.h"
#include "models/rope.h"

namespace tenon {
namespace {

DecoderTraits with_bias(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  return traits;
}

Result<ModelSpec> read_olmo(ConfigReader& config) {
  DecoderTraits traits = with_bias(config);
  traits.norm = NormKind::layer;
  traits.norm_weight = false;
  traits.eps = 1e-5;
  ModelSpec spec = read_decoder(config, traits);
  const double clip = config.number_or("clip_qkv", 0);
  for (BlockSpec& block : spec.blocks) attention_of(block).qkv_clip = clip;
  return spec;
}

Result<ModelSpec> read_olmo2(ConfigReader& config) {
  DecoderTraits traits = with_bias(config);
  traits.qk_norm = QkNorm::width;
  traits.names.mixer_norm = "";
  traits.names.mixer_post_norm = "post_attention_layernorm";
  traits.names.feed_forward_norm = "";
  traits.names.feed_forward_post_norm = "post_feedforward_layernorm";
  return read_decoder(config, traits);
}

Result<ModelSpec> read_olmo3(ConfigReader& config) {
  ASSIGN_OR_RETURN(ModelSpec spec, read_olmo2(config));
  const std::vector<int64_t> windows = read_windows(config);
  set_windows(spec, windows);
  if (spec.blocks.empty()) return spec;
  // Scaled rope is for full attention alone.
  const int64_t head_dim = attention_of(spec.blocks[0]).head_dim;
  spec.ropes.push_back(config.has("rope_parameters")
                           ? read_rope(config, {.head_dim = head_dim,
                                                .max_positions = spec.max_positions,
                                                .layer_type = "sliding_attention"})
                           : plain_rope(config.number_or("rope_theta", 10000), head_dim));
  for (size_t i = 0; i < spec.blocks.size(); ++i) attention_of(spec.blocks[i]).rope = windows[i] > 0 ? 1 : 0;
  return spec;
}

constexpr std::array kOlmoGguf = {GgufLayout{"olmo", /*permuted_rope=*/true}};
constexpr std::array kOlmo2Gguf = {GgufLayout{"olmo2"}};

constexpr Family kFamilies[] = {
    {"olmo", {"olmo"}, kOlmoGguf, read_olmo},
    {"olmo2", {"olmo2"}, kOlmo2Gguf, read_olmo2},
    {"olmo3", {"olmo3"}, {}, read_olmo3},
};

}  // namespace

std::span<const Family> olmo_families() {
  return kFamilies;
}

}  // namespace tenon
