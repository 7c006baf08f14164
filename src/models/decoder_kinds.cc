// Decoders that differ from Llama in one way each: differential attention (DiffLlama), a head with a layer of
// its own (ModernBERT decoder), a recurrent unit in two of three layers (RecurrentGemma).
#include <cmath>

#include "base/half.h"
#include "models/decoder.h"
#include "models/family.h"
#include "models/rope.h"

namespace tenon {
namespace {

Result<ModelSpec> read_diffllama(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  config.ignore("lambda_std_dev");
  ModelSpec spec = read_decoder(config, traits);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    config.require(a.kv_heads % 2 == 0, "num_key_value_heads", "must be even");
    a.differential = {layer_path(traits, i) + ".self_attn",
                      0.8 - 0.6 * std::exp(-0.3 * static_cast<double>(i)), spec.final_norm.eps};
  }
  return spec;
}

// The head is the embedding table, and a bias is one more column of it.
void tie_head_with_bias(ModelSpec& spec, const std::string& bias) {
  StoredBlock table, column;
  table.tensor = spec.embedding_path + ".weight";
  column.tensor = bias;
  table.rows = column.rows = spec.vocab;
  table.columns = column.column = spec.hidden;
  column.columns = 1;
  spec.stored[spec.head.path + ".weight"] = {table, column};
  spec.tied = false;
}

Result<ModelSpec> read_modernbert_decoder(ConfigReader& config) {
  DecoderTraits traits;
  traits.names.embedding = "model.embeddings.tok_embeddings";
  traits.names.final_norm = "model.final_norm";
  traits.names.head = "decoder";
  traits.names.attention = "attn";
  traits.names.o = "Wo";
  traits.names.gate_up = "Wi";
  traits.names.down = "Wo";
  traits.names.mixer_norm = "attn_norm";
  traits.names.feed_forward_norm = "mlp_norm";
  traits.norm = NormKind::layer;
  traits.eps_key = "norm_eps";
  traits.norm_bias = config.flag_or("norm_bias", false);
  traits.activation_key = "hidden_activation";
  traits.activation = "gelu";
  traits.tied = true;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.set_mlp_bias(config.flag_or("mlp_bias", false));
  for (const char* key : {"classifier_pooling", "initializer_cutoff_factor", "local_attention", "mlp_dropout",
                          "layer_norm_eps", "global_attn_every_n_layers"}) {
    config.ignore(key);
  }
  ModelSpec spec = read_decoder(config, traits);
  const std::vector<bool> sliding = layers_of_kind(config, "sliding_attention");
  config.require(sliding.size() == spec.blocks.size(), "layer_types", "must have one entry a layer");
  const int64_t window = config.positive("sliding_window");
  const std::string activation = config.text_or("classifier_activation", "gelu");
  config.require(activation == "gelu", "classifier_activation", "must be gelu");
  if (!config.status().ok() || spec.blocks.empty()) return spec;
  const int64_t head_dim = attention_of(spec.blocks[0]).head_dim;
  spec.ropes.push_back(read_rope(
      config,
      {.head_dim = head_dim, .max_positions = spec.max_positions, .layer_type = "sliding_attention"}));
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    a.rope = sliding[i] ? 1 : 0;
    a.attend.window = sliding[i] ? window : 0;
  }
  spec.blocks[0].mixer_norm = {};
  spec.embedding_norm = spec.head_norm = spec.final_norm;
  spec.embedding_norm.path = "model.embeddings.norm";
  spec.head_norm.path = "lm_head.norm";
  spec.head_dense = {"lm_head.dense", spec.hidden, spec.hidden, config.flag_or("classifier_bias", false)};
  spec.head.bias = config.flag_or("decoder_bias", true);
  if (spec.tied && spec.head.bias) tie_head_with_bias(spec, "decoder.bias");
  if (!spec.tied && spec.head.bias && spec.stored.empty()) spec.stored = head_with_bias(spec);
  return spec;
}

RecurrentUnitSpec recurrent_unit(ConfigReader& config, const ModelSpec& spec, const std::string& path) {
  RecurrentUnitSpec unit;
  unit.heads = config.positive("num_attention_heads");
  unit.width = config.positive_or("lru_width", spec.hidden);
  config.require(unit.width % unit.heads == 0, "lru_width", "must be a multiple of num_attention_heads");
  unit.in_x = {path + ".linear_x", spec.hidden, unit.width, true};
  unit.in_y = {path + ".linear_y", spec.hidden, unit.width, true};
  unit.out = {path + ".linear_out", unit.width, spec.hidden, true};
  unit.conv = {path + ".conv_1d", unit.width, config.positive("conv1d_width"), true};
  unit.path = path + ".rg_lru";
  return unit;
}

Result<ModelSpec> read_recurrent_gemma(ConfigReader& config) {
  DecoderTraits traits;
  traits.names.final_norm = "model.final_norm";
  traits.names.attention = "temporal_block";
  traits.names.mlp = "mlp_block";
  traits.names.mixer_norm = "temporal_pre_norm";
  traits.names.feed_forward_norm = "channel_pre_norm";
  traits.norm_offset = 1;
  traits.activation_key = "hidden_activation";
  traits.activation = "gelu_pytorch_tanh";
  traits.rotary = 0.5;
  traits.tied = true;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = true;
  traits.set_mlp_bias(true);
  for (const char* key : {"final_w_init_variance_scale", "w_init_variance_scale"}) config.ignore(key);
  ModelSpec spec = read_decoder(config, traits);
  // The reference keeps the factor in bf16.
  spec.embedding_scale = bf16_to_f32(f32_to_bf16(std::sqrt(static_cast<float>(spec.hidden))));
  spec.logit_softcap = config.number_or("logits_soft_cap", 30);
  const int64_t window = config.positive("attention_window_size");
  const std::vector<std::string> kinds = config.texts_or_empty("block_types");
  config.require(!kinds.empty(), "block_types", "is missing");
  if (!config.status().ok()) return spec;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    MlpSpec& mlp = mlp_of(spec.blocks[i]);
    mlp.gate.out = mlp.up.out = mlp.down.in = mlp.down.in / 2;
    const std::string& kind = kinds[i % kinds.size()];
    config.require(kind == "attention" || kind == "recurrent", "block_types", "has a kind that is not known");
    if (kind == "attention") {
      attention_of(spec.blocks[i]).attend.window = window;
    } else {
      spec.blocks[i].mixer = recurrent_unit(config, spec, layer_path(traits, i) + ".temporal_block");
    }
  }
  return spec;
}

constexpr Family kFamilies[] = {
    {"diffllama", {"diffllama"}, {}, read_diffllama},
    {"modernbert_decoder", {"modernbert-decoder"}, {}, read_modernbert_decoder},
    {"recurrent_gemma", {"recurrent_gemma"}, {}, read_recurrent_gemma},
};

}  // namespace

std::span<const Family> decoder_kinds_families() {
  return kFamilies;
}

}  // namespace tenon
