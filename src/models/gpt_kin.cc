// Families near GPT-2, GPT-NeoX, GPT-J and OPT: GPT-BigCode, CodeGen, GPT-Neo, GPT, BioGPT, XGLM, GPT-NeoX
// Japanese, Persimmon.
#include <cmath>

#include "models/decoder.h"
#include "models/family.h"
#include "models/rope.h"

namespace tenon {
namespace {

DecoderTraits biased_traits(std::string eps_key) {
  DecoderTraits traits;
  traits.norm = NormKind::layer;
  traits.norm_bias = true;
  traits.eps_key = std::move(eps_key);
  traits.gated = false;
  traits.rope = false;
  traits.tied = true;
  traits.set_qkv_bias(true);
  traits.o_bias = true;
  traits.set_mlp_bias(true);
  return traits;
}

void set_gpt_names(DecoderNames& names) {
  names.mixer_norm = "ln_1";
  names.feed_forward_norm = "ln_2";
  names.embedding = "transformer.wte";
  names.layers = "transformer.h";
  names.final_norm = "transformer.ln_f";
  names.attention = "attn";
  names.o = "c_proj";
  names.up = "c_fc";
  names.down = "c_proj";
}

void alias_gpt_keys(ConfigReader& config) {
  config.alias("hidden_size", "n_embd");
  config.alias("num_attention_heads", "n_head");
  config.alias("num_hidden_layers", "n_layer");
  config.alias("max_position_embeddings", "n_positions");
  config.alias("intermediate_size", "n_inner");
  for (const char* key : {"summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                          "summary_type", "summary_use_proj", "n_ctx", "attention_softmax_in_fp32",
                          "scale_attention_softmax_in_fp32", "task_specific_params"}) {
    config.ignore(key);
  }
}

Result<ModelSpec> read_bigcode(ConfigReader& config) {
  alias_gpt_keys(config);
  DecoderTraits traits = biased_traits("layer_norm_epsilon");
  set_gpt_names(traits.names);
  traits.activation_key = "activation_function";
  traits.activation = "gelu_pytorch_tanh";
  traits.intermediate = 4 * config.positive("hidden_size");
  ModelSpec spec = read_decoder(config, traits);
  spec.position_path = "transformer.wpe";
  const bool one_kv = config.flag_or("multi_query", true),
             scaled = config.flag_or("scale_attn_weights", true);
  config.require(!config.flag_or("add_cross_attention", false), "add_cross_attention", "is not supported");
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    a.kv_heads = one_kv ? 1 : a.heads;
    a.k.out = a.v.out = a.kv_heads * a.head_dim;
    if (!scaled) a.attend.scale = 1;
    fuse_qkv(a, layer_path(traits, i) + ".attn.c_attn", one_kv ? 1 : a.heads);
  }
  return spec;
}

Result<ModelSpec> read_codegen(ConfigReader& config) {
  alias_gpt_keys(config);
  DecoderTraits traits = biased_traits("layer_norm_epsilon");
  set_gpt_names(traits.names);
  traits.names.o = "out_proj";
  traits.names.up = "fc_in";
  traits.names.down = "fc_out";
  traits.names.feed_forward_norm = "";
  traits.activation_key = "activation_function";
  traits.activation = "gelu_new";
  traits.intermediate = 4 * config.positive("hidden_size");
  traits.set_qkv_bias(false);
  traits.o_bias = false;
  traits.parallel = true;
  traits.tied = false;
  ModelSpec spec = read_decoder(config, traits);
  if (spec.blocks.empty()) return spec;
  constexpr int64_t kPartitions = 4;  // of the machine that it was trained on
  config.require(attention_of(spec.blocks[0]).heads % kPartitions == 0, "n_head", "must be a multiple of 4");
  const int64_t dim = config.positive_or("rotary_dim", attention_of(spec.blocks[0]).head_dim);
  spec.ropes.push_back(plain_rope(10000, dim));
  spec.ropes[0].interleaved = true;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    a.rope = 0;
    fuse_qkv(a, layer_path(traits, i) + ".attn.qkv_proj", kPartitions, "qvk");
  }
  spec.head.bias = true;
  spec.stored = head_with_bias(spec);
  return spec;
}

Result<ModelSpec> read_gpt_neo(ConfigReader& config) {
  config.alias("num_attention_heads", "num_heads");
  config.alias("num_hidden_layers", "num_layers");
  for (const char* key : {"attention_types", "embed_dropout", "resid_dropout", "summary_first_dropout",
                          "summary_proj_to_labels", "summary_type", "summary_use_proj", "summary_activation",
                          "gradient_checkpointing", "tokenizer_class"}) {
    config.ignore(key);
  }
  DecoderTraits traits = biased_traits("layer_norm_epsilon");
  set_gpt_names(traits.names);
  traits.names.attention = "attn.attention";
  traits.names.o = "out_proj";
  traits.activation_key = "activation_function";
  traits.activation = "gelu_new";
  traits.intermediate = 4 * config.positive("hidden_size");
  traits.set_qkv_bias(false);
  ModelSpec spec = read_decoder(config, traits);
  spec.position_path = "transformer.wpe";
  const std::vector<std::string> kinds = config.texts_or_empty("attention_layers");
  const int64_t window = config.positive_or("window_size", 256);
  config.require(kinds.size() == spec.blocks.size(), "attention_layers", "must have one entry a layer");
  if (!config.status().ok()) return spec;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    a.attend.scale = 1;
    if (kinds[i] == "local") a.attend.window = window;
  }
  return spec;
}

// Norms after each sum, and none at the end.
void set_post_norms(ModelSpec& spec) {
  spec.final_norm = {};
  for (BlockSpec& block : spec.blocks) {
    std::swap(block.mixer_norm, block.mixer_sum_norm);
    std::swap(block.feed_forward_norm, block.feed_forward_sum_norm);
  }
}

Result<ModelSpec> read_openai_gpt(ConfigReader& config) {
  alias_gpt_keys(config);
  DecoderTraits traits = biased_traits("layer_norm_epsilon");
  set_gpt_names(traits.names);
  traits.names.embedding = "transformer.tokens_embed";
  traits.names.qkv = "c_attn";
  traits.intermediate = 4 * config.positive("hidden_size");
  ModelSpec spec = read_decoder(config, traits);
  spec.position_path = "transformer.positions_embed";
  const std::string name = config.text_or("afn", "gelu");
  config.require(name == "gelu" || name == "relu" || name == "silu" || name == "swish", "afn",
                 "is not known");
  set_post_norms(spec);
  for (BlockSpec& block : spec.blocks) {
    MlpSpec& mlp = mlp_of(block);
    // "gelu" is the approximation by tanh here.
    mlp.activation = name == "gelu"   ? Activation::gelu_tanh
                     : name == "relu" ? Activation::relu
                                      : Activation::silu;
    for (const LinearSpec* linear : {&attention_of(block).qkv, &attention_of(block).o, &mlp.up, &mlp.down}) {
      StoredBlock stored;
      stored.tensor = linear->path + ".weight";
      stored.rows = linear->out;
      stored.columns = linear->in;
      stored.transposed = true;
      spec.stored[stored.tensor] = {stored};
    }
  }
  return spec;
}

DecoderTraits fairseq_traits(std::string eps_key, const std::string& prefix) {
  DecoderTraits traits = biased_traits(std::move(eps_key));
  traits.names.embedding = prefix + ".embed_tokens";
  traits.names.layers = prefix + ".layers";
  traits.names.final_norm = prefix + ".layer_norm";
  traits.names.o = "out_proj";
  traits.names.mlp = "";
  traits.names.up = "fc1";
  traits.names.down = "fc2";
  traits.names.mixer_norm = "self_attn_layer_norm";
  traits.names.feed_forward_norm = "final_layer_norm";
  return traits;
}

Result<ModelSpec> read_biogpt(ConfigReader& config) {
  config.ignore("activation_dropout");
  config.ignore("attention_probs_dropout_prob");
  DecoderTraits traits = fairseq_traits("layer_norm_eps", "biogpt");
  traits.activation = "gelu";
  traits.names.head = "output_projection";
  ModelSpec spec = read_decoder(config, traits);
  if (config.flag_or("scale_embedding", true))
    spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden));
  // The first two rows of the table belong to padding.
  spec.position_path = "biogpt.embed_positions";
  StoredBlock block;
  block.tensor = spec.position_path + ".weight";
  block.rows = spec.max_positions;
  block.columns = spec.hidden;
  block.from_row = 2;
  spec.stored[block.tensor] = {block};
  return spec;
}

Result<ModelSpec> read_xglm(ConfigReader& config) {
  config.alias("hidden_size", "d_model");
  config.alias("num_attention_heads", "attention_heads");
  config.alias("num_hidden_layers", "num_layers");
  config.alias("intermediate_size", "ffn_dim");
  config.ignore("activation_dropout");
  DecoderTraits traits = fairseq_traits("layer_norm_eps", "model");
  traits.eps = 1e-5;
  traits.activation_key = "activation_function";
  traits.activation = "gelu";
  ModelSpec spec = read_decoder(config, traits);
  config.require(!config.flag_or("add_cross_attention", false), "add_cross_attention", "is not supported");
  if (config.flag_or("scale_embedding", true))
    spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden));
  // Sines, then cosines, of positions from 2 on.
  const int64_t half = spec.hidden / 2;
  const float step = static_cast<float>(-std::log(10000.0) / static_cast<double>(half - 1));
  for (int64_t p = 2; p < spec.max_positions + 2; ++p) {
    for (int64_t i = 0; i < 2 * half; ++i) {
      const float frequency = std::exp(static_cast<float>(i % half) * step);
      const float angle = static_cast<float>(p) * frequency;
      spec.position_table.push_back(i < half ? std::sin(angle) : std::cos(angle));
    }
  }
  config.require(spec.hidden % 2 == 0, "d_model", "must be even");
  return spec;
}

Result<ModelSpec> read_neox_japanese(ConfigReader& config) {
  DecoderTraits traits = biased_traits("layer_norm_eps");
  traits.rope = true;
  traits.activation = "gelu";
  traits.set_qkv_bias(false);
  traits.o_bias = false;
  traits.set_mlp_bias(false);
  traits.intermediate = config.positive_or("intermediate_multiple_size", 4) * config.positive("hidden_size");
  DecoderNames& names = traits.names;
  names.embedding = "gpt_neox_japanese.embed_in";
  names.layers = "gpt_neox_japanese.layers";
  names.final_norm = "gpt_neox_japanese.final_layer_norm";
  names.head = "embed_out";
  names.attention = "attention";
  names.o = "dense";
  names.up = "dense_h_to_4h";
  names.down = "dense_4h_to_h";
  ModelSpec spec = read_decoder(config, traits);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    fuse_qkv(a, layer_path(traits, i) + ".attention.query_key_value", a.heads);
    a.o.bias = i + 1 == spec.blocks.size();
  }
  spec.renames = {{"attention.dense.bias", "attention.dense_bias"}};
  return spec;
}

Result<ModelSpec> read_persimmon(ConfigReader& config) {
  DecoderTraits traits = biased_traits("layer_norm_eps");
  traits.rope = true;
  traits.rotary = 0.5;
  traits.tied = false;
  traits.activation = "relu2";
  DecoderNames& names = traits.names;
  names.final_norm = "model.final_layernorm";
  names.o = "dense";
  names.up = "dense_h_to_4h";
  names.down = "dense_4h_to_h";
  ModelSpec spec = read_decoder(config, traits);
  const bool qk_norm = config.flag_or("qk_layernorm", true);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    const std::string path = layer_path(traits, i) + ".self_attn.";
    fuse_qkv(a, path + "query_key_value", a.heads);
    if (!qk_norm) continue;
    a.q_norm = spec.final_norm;
    a.q_norm.width = a.head_dim;
    a.k_norm = a.q_norm;
    a.q_norm.path = path + "q_layernorm";
    a.k_norm.path = path + "k_layernorm";
  }
  return spec;
}

constexpr std::array kStarcoderGguf = {GgufLayout{"starcoder"}};

constexpr Family kFamilies[] = {
    {"gpt_bigcode", {"gpt_bigcode"}, kStarcoderGguf, read_bigcode},
    {"codegen", {"codegen"}, {}, read_codegen},
    {"gpt_neo", {"gpt_neo"}, {}, read_gpt_neo},
    {"openai_gpt", {"openai-gpt"}, {}, read_openai_gpt},
    {"biogpt", {"biogpt"}, {}, read_biogpt},
    {"xglm", {"xglm"}, {}, read_xglm},
    {"gpt_neox_japanese", {"gpt_neox_japanese"}, {}, read_neox_japanese},
    {"persimmon", {"persimmon"}, {}, read_persimmon},
};

}  // namespace

std::span<const Family> gpt_kin_families() {
  return kFamilies;
}

}  // namespace tenon
