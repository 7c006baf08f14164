// Dense families with blocks of their own: StarCoder2, StableLM, Nemotron, EXAONE 4, nanochat, Jais 2, BitNet
// (unquantised), MiniCPM3.
#include <cmath>

#include "models/decoder.h"
#include "models/family.h"
#include "models/rope.h"

namespace tenon {
namespace {

Result<ModelSpec> read_starcoder2(ConfigReader& config) {
  DecoderTraits traits;
  traits.norm = NormKind::layer;
  traits.norm_bias = true;
  traits.eps_key = "norm_epsilon";
  traits.activation = "gelu_pytorch_tanh";
  traits.gated = false;
  const bool bias = config.flag_or("use_bias", true);
  traits.set_qkv_bias(bias);
  traits.o_bias = bias;
  traits.set_mlp_bias(bias);
  traits.tied = true;
  traits.names.up = "c_fc";
  traits.names.down = "c_proj";
  ModelSpec spec = read_decoder(config, traits);
  set_windows(spec, read_windows(config));
  return spec;
}

// One norm for each head, each with its own tensor, as one weight [heads, head_dim].
NormSpec norm_by_head(ModelSpec& spec, NormSpec like, std::string path, int64_t heads, int64_t head_dim) {
  like.path = std::move(path);
  like.width = head_dim;
  like.heads = heads;
  like.bias = false;
  std::vector<StoredBlock>& blocks = spec.stored[like.path + ".weight"];
  for (int64_t head = 0; head < heads; ++head) {
    StoredBlock block;
    block.tensor = like.path + ".norms." + std::to_string(head) + ".weight";
    block.row = head;
    block.rows = 1;
    block.columns = head_dim;
    block.transposed = true;
    blocks.push_back(std::move(block));
  }
  return like;
}

Result<ModelSpec> read_stablelm(ConfigReader& config) {
  DecoderTraits traits;
  traits.norm = NormKind::layer;
  traits.norm_bias = true;
  traits.eps_key = "layer_norm_eps";
  traits.set_qkv_bias(config.flag_or("use_qkv_bias", false));
  traits.rotary = 0.25;
  traits.parallel = config.flag_or("use_parallel_residual", false);
  if (traits.parallel) traits.names.feed_forward_norm = "";
  ModelSpec spec = read_decoder(config, traits);
  const bool qk_norm = config.flag_or("qk_layernorm", false);
  for (size_t i = 0; qk_norm && i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    const std::string path = layer_path(traits, i) + ".self_attn.";
    a.q_norm = norm_by_head(spec, spec.final_norm, path + "q_layernorm", a.heads, a.head_dim);
    a.k_norm = norm_by_head(spec, spec.final_norm, path + "k_layernorm", a.kv_heads, a.head_dim);
  }
  return spec;
}

Result<ModelSpec> read_nemotron(ConfigReader& config) {
  DecoderTraits traits;
  traits.norm = NormKind::layer;
  traits.norm_bias = true;
  traits.norm_offset = 1;
  traits.eps_key = "norm_eps";
  traits.activation = "relu2";
  traits.gated = false;
  traits.rotary = 0.5;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.set_mlp_bias(config.flag_or("mlp_bias", false));
  return read_decoder(config, traits);
}

Result<ModelSpec> read_exaone4(ConfigReader& config) {
  DecoderTraits traits;
  traits.qk_norm = QkNorm::head;
  traits.names.mixer_norm = "";
  traits.names.mixer_post_norm = "post_attention_layernorm";
  traits.names.feed_forward_norm = "";
  traits.names.feed_forward_post_norm = "post_feedforward_layernorm";
  ModelSpec spec = read_decoder(config, traits);
  const std::vector<int64_t> windows = read_windows(config);
  set_windows(spec, windows);
  const bool mixed = config.has("sliding_window");
  for (size_t i = 0; mixed && i < spec.blocks.size(); ++i) {
    if (windows[i] == 0) attention_of(spec.blocks[i]).rope = -1;
  }
  return spec;
}

Result<ModelSpec> read_nanochat(ConfigReader& config) {
  DecoderTraits traits;
  traits.norm_weight = false;
  traits.activation = "relu2";
  traits.gated = false;
  traits.qk_norm = QkNorm::head;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.names.up = "fc1";
  traits.names.down = "fc2";
  ModelSpec spec = read_decoder(config, traits);
  for (float& frequency : spec.ropes[0].inv_freq) frequency = -frequency;
  spec.embedding_norm = spec.final_norm;
  spec.logit_softcap = config.number_or("final_logit_softcapping", 0);
  for (BlockSpec& block : spec.blocks) {
    AttentionSpec& a = attention_of(block);
    a.norm_after_rope = true;
    a.q_norm.weight = a.k_norm.weight = false;
  }
  return spec;
}

Result<ModelSpec> read_jais2(ConfigReader& config) {
  DecoderTraits traits;
  traits.norm = NormKind::layer;
  traits.norm_bias = true;
  traits.eps_key = "layer_norm_eps";
  traits.activation = "relu2";
  traits.gated = false;
  traits.set_qkv_bias(config.flag_or("attention_bias", true));
  traits.o_bias = traits.q_bias;
  traits.set_mlp_bias(config.flag_or("mlp_bias", true));
  return read_decoder(config, traits);
}

Result<ModelSpec> read_bitnet(ConfigReader& config) {
  if (config.has("quantization_config")) {
    return unsupported("quantised BitNet weights are not supported", config.subject());
  }
  DecoderTraits traits;
  traits.activation = "relu2";
  traits.tied = true;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  ModelSpec spec = read_decoder(config, traits);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    MlpSpec& mlp = mlp_of(spec.blocks[i]);
    a.out_norm =
        rms_norm_spec(layer_path(traits, i) + ".self_attn.attn_sub_norm", a.o.in, spec.final_norm.eps);
    mlp.inner_norm =
        rms_norm_spec(layer_path(traits, i) + ".mlp.ffn_sub_norm", mlp.down.in, spec.final_norm.eps);
  }
  return spec;
}

constexpr std::array kStarcoder2Gguf = {GgufLayout{"starcoder2"}};
constexpr std::array kExaone4Gguf = {GgufLayout{"exaone4"}};
constexpr std::array kStablelmGguf = {GgufLayout{"stablelm"}};
constexpr std::array kBitnetGguf = {GgufLayout{"bitnet"}};
constexpr std::array kNemotronGguf = {GgufLayout{"nemotron"}};

constexpr Family kFamilies[] = {
    {"starcoder2", {"starcoder2"}, kStarcoder2Gguf, read_starcoder2},
    {"stablelm", {"stablelm"}, kStablelmGguf, read_stablelm},
    {"nemotron", {"nemotron"}, kNemotronGguf, read_nemotron},
    {"exaone4", {"exaone4"}, kExaone4Gguf, read_exaone4},
    {"nanochat", {"nanochat"}, {}, read_nanochat},
    {"jais2", {"jais2"}, {}, read_jais2},
    {"bitnet", {"bitnet"}, kBitnetGguf, read_bitnet},
};

}  // namespace

std::span<const Family> dense_families() {
  return kFamilies;
}

}  // namespace tenon
