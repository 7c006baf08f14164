// Families with linear position biases (ALiBi, Press et al. 2021): BLOOM, Falcon (which also comes with
// rope), MPT.
#include <cmath>

#include "base/half.h"
#include "models/decoder.h"
#include "models/family.h"

namespace tenon {
namespace {

// Slopes of a power of two of heads, then every second one of twice as many.
std::vector<float> bloom_slopes(int64_t heads) {
  const double power = std::exp2(std::floor(std::log2(static_cast<double>(heads))));
  std::vector<float> slopes;
  for (int64_t i = 1; i <= heads; ++i) {
    const bool first = static_cast<double>(i) <= power;
    const double base = std::exp2(-8 / (first ? power : 2 * power));
    const double exponent = first ? static_cast<double>(i) : 2 * (static_cast<double>(i) - power) - 1;
    slopes.push_back(static_cast<float>(std::pow(static_cast<float>(base), exponent)));
  }
  return slopes;
}

std::vector<float> mpt_slopes(int64_t heads, double most) {
  const double power = std::exp2(std::ceil(std::log2(static_cast<double>(heads))));
  std::vector<float> all, slopes;
  for (double i = 1; i <= power; ++i) all.push_back(static_cast<float>(std::exp2(-i * most / power)));
  if (static_cast<double>(heads) == power) return all;
  for (size_t i = 1; i < all.size(); i += 2) slopes.push_back(all[i]);
  for (size_t i = 0; i < all.size(); i += 2) slopes.push_back(all[i]);
  slopes.resize(static_cast<size_t>(heads));
  return slopes;
}

DecoderTraits bloom_traits() {
  DecoderTraits traits;
  traits.norm = NormKind::layer;
  traits.norm_bias = true;
  traits.eps_key = "layer_norm_epsilon";
  traits.gated = false;
  traits.rope = false;
  traits.tied = true;
  DecoderNames& names = traits.names;
  names.embedding = "transformer.word_embeddings";
  names.layers = "transformer.h";
  names.final_norm = "transformer.ln_f";
  names.attention = "self_attention";
  names.o = "dense";
  names.up = "dense_h_to_4h";
  names.down = "dense_4h_to_h";
  return traits;
}

Result<ModelSpec> read_bloom(ConfigReader& config) {
  config.alias("num_attention_heads", "n_head");
  config.alias("num_hidden_layers", "n_layer");
  config.ignore("slow_but_exact");
  DecoderTraits traits = bloom_traits();
  traits.activation = "gelu_new";
  traits.set_qkv_bias(true);
  traits.o_bias = true;
  traits.set_mlp_bias(true);
  traits.intermediate = 4 * config.positive("hidden_size");
  ModelSpec spec = read_decoder(config, traits);
  config.require(!config.flag_or("apply_residual_connection_post_layernorm", false),
                 "apply_residual_connection_post_layernorm", "is not supported");
  spec.embedding_norm = spec.final_norm;
  spec.embedding_norm.path = "transformer.word_embeddings_layernorm";
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    fuse_qkv(a, layer_path(traits, i) + ".self_attention.query_key_value", a.heads);
    a.attend.alibi = Alibi::plain;
    a.attend.slopes = bloom_slopes(a.heads);
  }
  return spec;
}

Result<ModelSpec> read_falcon(ConfigReader& config) {
  DecoderTraits traits = bloom_traits();
  const bool alibi = config.flag_or("alibi", false),
             grouped = config.flag_or("new_decoder_architecture", false);
  const bool one_kv = config.flag_or("multi_query", true), bias = config.flag_or("bias", false);
  const int64_t heads = config.positive("num_attention_heads");
  const int64_t norms = config.positive_or("num_ln_in_parallel_attn", grouped ? 2 : 1);
  traits.rope = !alibi;
  if (alibi) config.ignore("rope_parameters");
  traits.activation_key = "activation";
  traits.activation = "gelu";
  config.alias("intermediate_size", "ffn_hidden_size");
  traits.intermediate = 4 * config.positive("hidden_size");
  traits.set_qkv_bias(bias);
  traits.o_bias = bias;
  traits.set_mlp_bias(bias);
  traits.parallel = config.flag_or("parallel_attn", true) || grouped;
  if (traits.parallel) traits.names.feed_forward_norm = "";
  if (grouped && norms == 2) {
    traits.names.mixer_norm = "ln_attn";
    traits.names.feed_forward_norm = "ln_mlp";
  }
  ModelSpec spec = read_decoder(config, traits);
  const int64_t kv_heads = grouped ? config.positive_or("num_kv_heads", heads) : one_kv ? 1 : heads;
  config.ignore("num_kv_heads");
  config.require(heads % kv_heads == 0, "num_kv_heads", "must divide num_attention_heads");
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    a.kv_heads = kv_heads;
    a.k.out = a.v.out = kv_heads * a.head_dim;
    const int64_t groups = grouped ? kv_heads : one_kv ? 1 : heads;
    fuse_qkv(a, layer_path(traits, i) + ".self_attention.query_key_value", groups);
    if (!alibi) continue;
    a.attend.alibi = Alibi::bf16;
    // Added to the scores before they are scaled, and again with the mask (the reference's eager attention).
    a.attend.alibi_scale = 2 * a.attend.scale;
    for (float slope : bloom_slopes(a.heads)) a.attend.slopes.push_back(bf16_to_f32(f32_to_bf16(slope)));
  }
  return spec;
}

Result<ModelSpec> read_mpt(ConfigReader& config) {
  config.alias("hidden_size", "d_model");
  config.alias("num_attention_heads", "n_heads");
  config.alias("num_hidden_layers", "n_layers");
  config.alias("max_position_embeddings", "max_seq_len");
  for (const char* key : {"init_device", "learned_pos_emb", "norm_type", "embedding_fraction", "verbose",
                          "resid_pdrop", "use_norm_bias"}) {
    config.ignore(key);
  }
  DecoderTraits traits;
  traits.norm = NormKind::layer;
  traits.eps_key = "layer_norm_epsilon";
  traits.eps = 1e-5;
  traits.gated = false;
  traits.rope = false;
  traits.tied = true;
  traits.activation = "gelu";
  traits.intermediate = 4 * config.positive("hidden_size");  // expansion_ratio is not read there either
  config.ignore("expansion_ratio");
  config.require(config.flag_or("no_bias", true), "no_bias", "must be true");
  config.require(config.number_or("logit_scale", 1) == 1, "logit_scale", "is not supported");
  DecoderNames& names = traits.names;
  names.embedding = "transformer.wte";
  names.layers = "transformer.blocks";
  names.final_norm = "transformer.norm_f";
  names.attention = "attn";
  names.qkv = "Wqkv";
  names.o = "out_proj";
  names.mlp = "ffn";
  names.mixer_norm = "norm_1";
  names.feed_forward_norm = "norm_2";
  ModelSpec spec = read_decoder(config, traits);
  std::optional<ConfigReader> attention = config.object("attn_config");
  if (!attention) return bad_file("the key 'attn_config' is missing", config.subject());
  attention->require(attention->flag_or("alibi", true), "alibi", "must be true");
  attention->require(!attention->flag_or("qk_ln", false), "qk_ln", "is not supported");
  attention->require(!attention->flag_or("prefix_lm", false), "prefix_lm", "is not supported");
  const std::string heads = attention->text_or("attn_type", "multihead_attention");
  attention->require(heads == "multihead_attention", "attn_type", "must be multihead_attention");
  attention->require(!attention->flag_or("attn_uses_sequence_id", false), "attn_uses_sequence_id",
                     "must be false");
  attention->ignore("attn_impl");
  const double clip = attention->number_or("clip_qkv", 0), scale = attention->number_or("softmax_scale", 0);
  const double most = attention->number_or("alibi_bias_max", 8);
  attention->require(most > 0, "alibi_bias_max", "must be positive");
  RETURN_IF_ERROR(attention->status());
  for (BlockSpec& block : spec.blocks) {
    AttentionSpec& a = attention_of(block);
    a.qkv_clip = clip;
    if (scale != 0) a.attend.scale = scale;
    a.attend.alibi = Alibi::plain;
    a.attend.slopes = mpt_slopes(a.heads, most);
  }
  return spec;
}

constexpr std::array kBloomGguf = {GgufLayout{"bloom"}};
constexpr std::array kMptGguf = {GgufLayout{"mpt"}};
constexpr std::array kFalconGguf = {GgufLayout{"falcon"}};
constexpr Family kFamilies[] = {
    {"bloom", {"bloom"}, kBloomGguf, read_bloom},
    {"falcon", {"falcon"}, kFalconGguf, read_falcon},
    {"mpt", {"mpt"}, kMptGguf, read_mpt},
};

}  // namespace

std::span<const Family> bloom_families() {
  return kFamilies;
}

}  // namespace tenon
