// Llama 1 to 3.2 and what copies its block with few changes: Mistral, Ministral, Yi, SmolLM, InternLM3,
// Arcee, Helium, ERNIE 4.5, Seed-OSS, Hunyuan, EXAONE 3.
#include "models/decoder.h"
#include "models/family.h"

namespace tenon {
namespace {

constexpr std::array kLlamaGguf = {GgufLayout{"llama", /*permuted_rope=*/true},
                                   GgufLayout{"internlm2", /*permuted_rope=*/true}};

DecoderTraits llama_traits(ConfigReader& config) {
  DecoderTraits traits;
  const bool bias = config.flag_or("attention_bias", false);
  traits.set_qkv_bias(bias);
  traits.o_bias = bias;
  traits.set_mlp_bias(config.flag_or("mlp_bias", false));
  return traits;
}

Result<ModelSpec> read_llama(ConfigReader& config) {
  return read_decoder(config, llama_traits(config));
}

Result<ModelSpec> read_mistral(ConfigReader& config) {
  ModelSpec spec = read_decoder(config, {});
  set_windows(spec, read_windows(config));
  return spec;
}

Result<ModelSpec> read_ministral3(ConfigReader& config) {
  ModelSpec spec = read_decoder(config, {});
  set_windows(spec, read_windows(config));
  auto parameters = config.object("rope_parameters");
  if (!parameters || !parameters->has("llama_4_scaling_beta")) return spec;
  const PositionScale scale{.beta = parameters->number("llama_4_scaling_beta"),
                            .period = parameters->positive("original_max_position_embeddings")};
  for (BlockSpec& block : spec.blocks) attention_of(block).q_scale = scale;
  RETURN_IF_ERROR(parameters->status());
  return spec;
}

Result<ModelSpec> read_internlm3(ConfigReader& config) {
  DecoderTraits traits;
  const bool bias = config.flag_or("qkv_bias", false);
  traits.set_qkv_bias(bias);
  traits.o_bias = config.flag_or("attention_bias", config.flag_or("bias", false));
  traits.set_mlp_bias(config.flag_or("mlp_bias", config.flag_or("bias", false)));
  return read_decoder(config, traits);
}

// InternLM2's own code: projections of q, k and v fused, each key head's queries with its key and value.
Result<ModelSpec> read_internlm2(ConfigReader& config) {
  DecoderTraits traits;
  DecoderNames& names = traits.names;
  names.embedding = "model.tok_embeddings";
  names.head = "output";
  names.attention = "attention";
  names.qkv = "wqkv";
  names.o = "wo";
  names.mlp = "feed_forward";
  names.gate = "w1";
  names.up = "w3";
  names.down = "w2";
  names.mixer_norm = "attention_norm";
  names.feed_forward_norm = "ffn_norm";
  traits.set_qkv_bias(config.flag_or("bias", false));
  traits.o_bias = traits.q_bias;
  ModelSpec spec = read_decoder(config, traits);
  for (BlockSpec& block : spec.blocks) {
    AttentionSpec& a = attention_of(block);
    a.qkv_groups = a.kv_heads;
  }
  return spec;
}

Result<ModelSpec> read_cwm(ConfigReader& config) {
  ModelSpec spec = read_decoder(config, llama_traits(config));
  set_windows(spec, read_windows(config));
  return spec;
}

Result<ModelSpec> read_smollm3(ConfigReader& config) {
  ModelSpec spec = read_decoder(config, llama_traits(config));
  set_windows(spec, read_windows(config));
  const std::vector<double> rope = config.numbers_or_empty("no_rope_layers");
  const int64_t interval = config.positive_or("no_rope_layer_interval", 4);
  config.require(rope.empty() || rope.size() == spec.blocks.size(), "no_rope_layers",
                 "must have one entry a layer");
  for (size_t i = 0; i < spec.blocks.size() && config.status().ok(); ++i) {
    const bool rotated = rope.empty() ? (static_cast<int64_t>(i) + 1) % interval != 0 : rope[i] != 0;
    if (!rotated) attention_of(spec.blocks[i]).rope = -1;
  }
  return spec;
}

Result<ModelSpec> read_arcee(ConfigReader& config) {
  DecoderTraits traits = llama_traits(config);
  traits.gated = false;
  traits.activation = "relu2";
  return read_decoder(config, traits);
}

Result<ModelSpec> read_helium(ConfigReader& config) {
  DecoderTraits traits = llama_traits(config);
  traits.o_bias = false;
  traits.interleaved = true;
  return read_decoder(config, traits);
}

Result<ModelSpec> read_ernie(ConfigReader& config) {
  DecoderTraits traits;
  const bool bias = config.flag_or("use_bias", false);
  traits.set_qkv_bias(bias);
  traits.o_bias = bias;
  traits.set_mlp_bias(bias);
  traits.interleaved = true;
  return read_decoder(config, traits);
}

Result<ModelSpec> read_seed(ConfigReader& config) {
  DecoderTraits traits = llama_traits(config);
  traits.set_qkv_bias(config.flag_or("attention_bias", true));
  traits.o_bias = config.flag_or("attention_out_bias", false);
  return read_decoder(config, traits);
}

Result<ModelSpec> read_hunyuan(ConfigReader& config) {
  DecoderTraits traits = llama_traits(config);
  traits.set_mlp_bias(false);
  traits.qk_norm = QkNorm::head;
  traits.names.q_norm = "query_layernorm";
  traits.names.k_norm = "key_layernorm";
  ModelSpec spec = read_decoder(config, traits);
  for (BlockSpec& block : spec.blocks) attention_of(block).norm_after_rope = true;
  return spec;
}

Result<ModelSpec> read_exaone(ConfigReader& config) {
  ModelSpec spec = read_decoder(config, llama_traits(config));
  spec.renames = {{"model.layers.", "transformer.h."},
                  {"model.embed_tokens", "transformer.wte"},
                  {"model.norm", "transformer.ln_f"},
                  {"input_layernorm", "ln_1"},
                  {"post_attention_layernorm", "ln_2"},
                  {"self_attn", "attn.attention"},
                  {"o_proj", "out_proj"},
                  {"gate_proj", "c_fc_0"},
                  {"up_proj", "c_fc_1"},
                  {"down_proj", "c_proj"}};
  return spec;
}

constexpr std::array kSmollm3Gguf = {GgufLayout{"smollm3", /*permuted_rope=*/true}};
constexpr std::array kArceeGguf = {GgufLayout{"arcee", /*permuted_rope=*/true}};
constexpr std::array kErnie45Gguf = {GgufLayout{"ernie4_5"}};
constexpr std::array kHunyuanDenseGguf = {GgufLayout{"hunyuan-dense"}};
constexpr std::array kSeedOssGguf = {GgufLayout{"seed_oss"}};
constexpr std::array kExaoneGguf = {GgufLayout{"exaone"}};

constexpr Family kFamilies[] = {
    {"llama", {"llama"}, kLlamaGguf, read_llama},
    {"mistral", {"mistral", "ministral"}, {}, read_mistral},
    {"ministral3", {"ministral3"}, {}, read_ministral3},
    {"internlm2", {"internlm2"}, {}, read_internlm2},
    {"internlm3", {"internlm3"}, {}, read_internlm3},
    {"iquestcoder", {"iquestcoder"}, {}, read_llama},
    {"cwm", {"cwm"}, {}, read_cwm},
    {"smollm3", {"smollm3"}, kSmollm3Gguf, read_smollm3},
    {"arcee", {"arcee"}, kArceeGguf, read_arcee},
    {"helium", {"helium"}, {}, read_helium},
    {"ernie4_5", {"ernie4_5"}, kErnie45Gguf, read_ernie},
    {"seed_oss", {"seed_oss"}, kSeedOssGguf, read_seed},
    {"hunyuan", {"hunyuan_v1_dense"}, kHunyuanDenseGguf, read_hunyuan},
    {"exaone", {"exaone"}, kExaoneGguf, read_exaone},
};

}  // namespace

std::span<const Family> llama_families() {
  return kFamilies;
}

}  // namespace tenon
