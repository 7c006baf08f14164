// Families after GPT-2 with learned or rotary positions: GPT-2, GPT-NeoX, GPT-J, OPT.
#include <fmt/format.h>

#include "models/decoder.h"
#include "models/family.h"
#include "models/rope.h"

namespace tenon {
namespace {

DecoderTraits gpt_traits() {
  DecoderTraits traits;
  traits.norm = NormKind::layer;
  traits.norm_bias = true;
  traits.gated = false;
  traits.rope = false;
  traits.set_qkv_bias(true);
  traits.o_bias = true;
  traits.set_mlp_bias(true);
  traits.names.feed_forward_norm = "ln_2";
  traits.names.mixer_norm = "ln_1";
  traits.names.embedding = "transformer.wte";
  traits.names.layers = "transformer.h";
  traits.names.final_norm = "transformer.ln_f";
  traits.names.attention = "attn";
  return traits;
}

void alias_gpt_keys(ConfigReader& config) {
  config.alias("hidden_size", "n_embd");
  config.alias("num_attention_heads", "n_head");
  config.alias("num_hidden_layers", "n_layer");
  config.alias("max_position_embeddings", "n_positions");
  config.alias("intermediate_size", "n_inner");
  for (const char* key :
       {"summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type",
        "summary_use_proj", "n_ctx", "task_specific_params", "reorder_and_upcast_attn"}) {
    config.ignore(key);
  }
}

// A weight stored as [in, out].
void store_transposed(ModelSpec& spec, const LinearSpec& linear) {
  StoredBlock block;
  block.tensor = linear.path + ".weight";
  block.rows = linear.out;
  block.columns = linear.in;
  block.transposed = true;
  spec.stored[block.tensor] = {block};
}

Result<ModelSpec> read_gpt2(ConfigReader& config) {
  alias_gpt_keys(config);
  DecoderTraits traits = gpt_traits();
  traits.eps_key = "layer_norm_epsilon";
  traits.activation_key = "activation_function";
  traits.activation = "gelu_new";
  traits.tied = true;
  traits.intermediate = 4 * config.positive("hidden_size");
  traits.names.qkv = "c_attn";
  traits.names.o = "c_proj";
  traits.names.up = "c_fc";
  traits.names.down = "c_proj";
  ModelSpec spec = read_decoder(config, traits);
  spec.position_path = "transformer.wpe";
  const bool by_layer = config.flag_or("scale_attn_by_inverse_layer_idx", false);
  const bool scaled = config.flag_or("scale_attn_weights", true);
  config.require(!config.flag_or("add_cross_attention", false), "add_cross_attention", "is not supported");
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    if (!scaled) a.attend.scale = 1;
    if (by_layer) a.attend.scale /= static_cast<double>(i + 1);
    for (const LinearSpec* linear :
         {&a.qkv, &a.o, &mlp_of(spec.blocks[i]).up, &mlp_of(spec.blocks[i]).down}) {
      store_transposed(spec, *linear);
    }
  }
  return spec;
}

Result<ModelSpec> read_neox(ConfigReader& config) {
  DecoderTraits traits = gpt_traits();
  traits.rope = true;
  traits.rotary = config.number_or("rotary_pct", 0.25);
  if (config.has("rotary_emb_base")) config.alias("rope_theta", "rotary_emb_base");
  traits.eps_key = "layer_norm_eps";
  traits.activation = "gelu";
  const bool bias = config.flag_or("attention_bias", true);
  traits.set_qkv_bias(bias);
  traits.o_bias = bias;
  traits.parallel = config.flag_or("use_parallel_residual", true);
  DecoderNames& names = traits.names;
  names.embedding = "gpt_neox.embed_in";
  names.layers = "gpt_neox.layers";
  names.final_norm = "gpt_neox.final_layer_norm";
  names.head = "embed_out";
  names.attention = "attention";
  names.o = "dense";
  names.up = "dense_h_to_4h";
  names.down = "dense_4h_to_h";
  names.mixer_norm = "input_layernorm";
  names.feed_forward_norm = "post_attention_layernorm";
  ModelSpec spec = read_decoder(config, traits);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    fuse_qkv(a, layer_path(traits, i) + ".attention.query_key_value", a.heads);
  }
  return spec;
}

Result<ModelSpec> read_gptj(ConfigReader& config) {
  alias_gpt_keys(config);
  DecoderTraits traits = gpt_traits();
  traits.eps_key = "layer_norm_epsilon";
  traits.activation_key = "activation_function";
  traits.activation = "gelu_new";
  traits.set_qkv_bias(false);
  traits.o_bias = false;
  traits.parallel = true;
  traits.intermediate = 4 * config.positive("hidden_size");
  traits.names.o = "out_proj";
  traits.names.up = "fc_in";
  traits.names.down = "fc_out";
  traits.names.feed_forward_norm = "";
  ModelSpec spec = read_decoder(config, traits);
  if (spec.blocks.empty()) return spec;
  const int64_t dim = config.positive_or("rotary_dim", attention_of(spec.blocks[0]).head_dim);
  spec.ropes.push_back(plain_rope(10000, dim));
  spec.ropes[0].interleaved = true;
  for (BlockSpec& block : spec.blocks) attention_of(block).rope = 0;
  spec.head.bias = true;
  spec.stored = head_with_bias(spec);
  return spec;
}

Result<ModelSpec> read_opt(ConfigReader& config) {
  config.alias("intermediate_size", "ffn_dim");
  DecoderTraits traits = gpt_traits();
  traits.eps = 1e-5;
  traits.activation_key = "activation_function";
  traits.activation = "relu";
  traits.tied = true;
  const bool bias = config.flag_or("enable_bias", true),
             before = config.flag_or("do_layer_norm_before", true);
  config.require(config.flag_or("layer_norm_elementwise_affine", true), "layer_norm_elementwise_affine",
                 "must be true");
  traits.set_qkv_bias(bias);
  traits.o_bias = bias;
  traits.set_mlp_bias(bias);
  DecoderNames& names = traits.names;
  names.embedding = "model.decoder.embed_tokens";
  names.layers = "model.decoder.layers";
  names.final_norm = "model.decoder.final_layer_norm";
  names.attention = "self_attn";
  names.o = "out_proj";
  names.mlp = "";
  names.up = "fc1";
  names.down = "fc2";
  names.mixer_norm = "self_attn_layer_norm";
  names.feed_forward_norm = "final_layer_norm";
  ModelSpec spec = read_decoder(config, traits);
  const bool removed = config.flag_or("_remove_final_layer_norm", false);
  if (!before || removed) spec.final_norm = {};
  for (BlockSpec& block : spec.blocks) {
    if (before) break;
    std::swap(block.mixer_norm, block.mixer_sum_norm);
    std::swap(block.feed_forward_norm, block.feed_forward_sum_norm);
  }
  const int64_t width = config.positive_or("word_embed_proj_dim", spec.hidden);
  if (width != spec.hidden) {
    spec.embedding_width = width;
    spec.head.in = width;
    spec.project_in = {"model.decoder.project_in", width, spec.hidden};
    spec.project_out = {"model.decoder.project_out", spec.hidden, width};
  }
  // The first two rows of the table belong to padding.
  spec.position_path = "model.decoder.embed_positions";
  StoredBlock block;
  block.tensor = spec.position_path + ".weight";
  block.rows = spec.max_positions;
  block.columns = spec.hidden;
  block.from_row = 2;
  spec.stored[block.tensor] = {block};
  return spec;
}

constexpr std::array kGpt2Gguf = {GgufLayout{"gpt2"}};
constexpr std::array kGptNeoxGguf = {GgufLayout{"gptneox"}};
constexpr Family kFamilies[] = {
    {"gpt2", {"gpt2"}, kGpt2Gguf, read_gpt2},
    {"gpt_neox", {"gpt_neox"}, kGptNeoxGguf, read_neox},
    {"gptj", {"gptj"}, {}, read_gptj},
    {"opt", {"opt"}, {}, read_opt},
};

}  // namespace

std::span<const Family> gpt_families() {
  return kFamilies;
}

}  // namespace tenon
