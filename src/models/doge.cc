// Doge: each head of keys keeps those whose values weigh most, and adds that weight to their scores; the
// stream joins each layer's output times a weight.
#include "models/decoder.h"
#include "models/family.h"

namespace tenon {
namespace {

Result<ModelSpec> read_doge(ConfigReader& config) {
  DecoderTraits traits;
  traits.qk_norm = QkNorm::head;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.set_mlp_bias(config.flag_or("mlp_bias", false));
  for (const char* key : {"num_experts", "num_experts_per_tok", "norm_topk_prob"}) config.ignore(key);
  config.require(!config.flag_or("is_moe", false), "is_moe",
                 "must be false: retrieved experts are not built");
  config.require(!config.has("sliding_window"), "sliding_window", "is not supported");
  ModelSpec spec = read_decoder(config, traits);
  const int64_t keep = config.positive_or("keep_window_size", 2048);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    const std::string layer = layer_path(traits, i), path = layer + ".self_attn";
    AttentionSpec& a = attention_of(block);
    a.value_mask = ValueMaskSpec{
        .keep = keep, .step = {path + ".dt_proj", a.v.out, a.kv_heads, a.v.bias}, .rate = path + ".A"};
    block.mixer_residual.skip_weight = layer + ".input_residual";
    block.feed_forward_residual.skip_weight = layer + ".post_attention_residual";
  }
  return spec;
}

constexpr Family kFamilies[] = {
    {"doge", {"doge"}, {}, read_doge},
};

}  // namespace

std::span<const Family> doge_families() {
  return kFamilies;
}

}  // namespace tenon
