// LFM2 and LFM3: gated short convolutions with some layers of attention.
#include "models/experts.h"
#include "models/family.h"
#include "models/rope.h"

namespace tenon {
namespace {

DecoderTraits lfm_traits() {
  DecoderTraits traits;
  traits.names.final_norm = "model.embedding_norm";
  traits.names.mlp = "feed_forward";
  traits.names.gate = "w1";
  traits.names.up = "w3";
  traits.names.down = "w2";
  traits.names.mixer_norm = "operator_norm";
  traits.names.feed_forward_norm = "ffn_norm";
  traits.eps_key = "norm_eps";
  traits.qk_norm = QkNorm::head;
  traits.tied = true;
  return traits;
}

DecoderTraits lfm2_traits(ConfigReader& config) {
  DecoderTraits traits = lfm_traits();
  traits.names.o = "out_proj";
  traits.names.q_norm = "q_layernorm";
  traits.names.k_norm = "k_layernorm";
  if (config.has("tie_embedding")) config.alias("tie_word_embeddings", "tie_embedding");
  if (config.has("block_ff_dim")) config.alias("intermediate_size", "block_ff_dim");
  for (const char* key : {"conv_dim", "conv_dim_out", "conv_use_xavier_init", "block_dim",
                          "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale",
                          "block_use_swiglu", "block_use_xavier_init", "num_heads", "use_pos_enc"}) {
    config.ignore(key);
  }
  return traits;
}

// Layers of attention, by `layer_types` or `full_attn_idxs`.
std::vector<bool> attention_layers(ConfigReader& config, size_t layers) {
  std::vector<bool> attends(layers, false);
  const std::vector<std::string> types = config.texts_or_empty("layer_types");
  const std::vector<double> indices = config.numbers_or_empty("full_attn_idxs");
  config.require(types.size() == layers || (types.empty() && !indices.empty()), "layer_types",
                 "must have one entry a layer");
  if (!config.status().ok()) return attends;
  for (size_t i = 0; i < types.size(); ++i) {
    config.require(types[i] == "conv" || types[i] == "full_attention" || types[i] == "sliding_attention",
                   "layer_types", "has a kind that is not known: " + types[i]);
    attends[i] = types[i] != "conv";
  }
  for (double index : indices) {
    if (types.empty() && index >= 0 && index < static_cast<double>(layers))
      attends[static_cast<size_t>(index)] = true;
  }
  return attends;
}

void set_convolutions(ConfigReader& config, ModelSpec& spec, const DecoderTraits& traits) {
  const std::vector<bool> attends = attention_layers(config, spec.blocks.size());
  const int64_t taps = config.positive("conv_L_cache");
  const bool bias = config.flag_or("conv_bias", false);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (attends[i]) continue;
    const std::string path = layer_path(traits, i) + ".conv";
    ShortConvSpec conv;
    conv.in = {path + ".in_proj", spec.hidden, 3 * spec.hidden, bias};
    conv.conv = {path + ".conv", spec.hidden, taps, bias};
    conv.out = {path + ".out_proj", spec.hidden, spec.hidden, bias};
    spec.blocks[i].mixer = std::move(conv);
  }
}

// The width that LFM2's configuration means: two thirds of it, times a factor, rounded up.
int64_t adjusted_width(ConfigReader& config, int64_t width) {
  if (!config.flag_or("block_auto_adjust_ff_dim", true)) {
    config.ignore("block_ffn_dim_multiplier");
    config.ignore("block_multiple_of");
    return width;
  }
  width = 2 * width / 3;
  const double factor = config.number_or("block_ffn_dim_multiplier", 1);
  const int64_t multiple = config.positive_or("block_multiple_of", 256);
  width = static_cast<int64_t>(factor * static_cast<double>(width));
  return (width + multiple - 1) / multiple * multiple;
}

Result<ModelSpec> read_lfm2(ConfigReader& config) {
  const DecoderTraits traits = lfm2_traits(config);
  ModelSpec spec = read_decoder(config, traits);
  set_convolutions(config, spec, traits);
  for (BlockSpec& block : spec.blocks) {
    MlpSpec& mlp = mlp_of(block);
    mlp.gate.out = mlp.up.out = mlp.down.in = adjusted_width(config, mlp.down.in);
  }
  return spec;
}

Result<ModelSpec> read_lfm2_moe(ConfigReader& config) {
  const DecoderTraits traits = lfm2_traits(config);
  ModelSpec spec = read_decoder(config, traits);
  set_convolutions(config, spec, traits);
  MoeSpec moe;
  moe.scores = RouterScores::sigmoid;
  moe.top_k.k = config.positive("num_experts_per_tok");
  moe.renormalise = config.flag_or("norm_topk_prob", true);
  moe.renormalise_eps = 1e-6;
  moe.scale = config.number_or("routed_scaling_factor", 1);
  ExpertNames names{.module = "feed_forward",
                    .file = "feed_forward",
                    .gate = "w1",
                    .up = "w3",
                    .down = "w2",
                    .selection_bias = "expert_bias"};
  if (!config.flag_or("use_expert_bias", true)) names.selection_bias.clear();
  const ExpertSizes sizes{config.positive("num_experts"), config.positive("moe_intermediate_size")};
  const int64_t dense = config.integer("num_dense_layers");
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (static_cast<int64_t>(i) >= dense) set_experts(spec, i, moe, names, sizes);
  }
  return spec;
}

Result<ModelSpec> read_lfm3(ConfigReader& config) {
  DecoderTraits traits = lfm_traits();
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  if (config.flag_or("use_sandwich_norm", true)) {
    traits.names.mixer_post_norm = "post_operator_norm";
    traits.names.feed_forward_post_norm = "post_ffn_norm";
  }
  ModelSpec spec = read_decoder(config, traits);
  set_convolutions(config, spec, traits);
  if (!config.status().ok() || spec.blocks.empty()) return spec;
  const std::vector<bool> sliding = layers_of_kind(config, "sliding_attention");
  const int64_t head_dim =
      config.positive_or("head_dim", spec.hidden / config.positive("num_attention_heads"));
  spec.ropes.push_back(read_rope(
      config,
      {.head_dim = head_dim, .max_positions = spec.max_positions, .layer_type = "sliding_attention"}));
  const bool gated = config.flag_or("use_attention_gate", true);
  const int64_t window = config.positive_or("sliding_window", 0);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    auto* a = std::get_if<AttentionSpec>(&spec.blocks[i].mixer);
    if (!a) continue;
    a->rope = sliding[i] ? 1 : 0;
    a->attend.window = sliding[i] ? window : 0;
    if (!gated) continue;
    a->gate = {layer_path(traits, i) + ".self_attn.g_proj", spec.hidden, a->heads};
    a->gate_kind = GateKind::sigmoid;
  }
  spec.renames.emplace_back("self_attn.g_proj", "self_attn.gate_proj");
  return spec;
}

constexpr std::array kLfm2Gguf = {GgufLayout{"lfm2"}};
constexpr std::array kLfm2MoeGguf = {GgufLayout{"lfm2moe"}};
constexpr Family kFamilies[] = {
    {"lfm2", {"lfm2"}, kLfm2Gguf, read_lfm2},
    {"lfm2_moe", {"lfm2_moe"}, kLfm2MoeGguf, read_lfm2_moe},
    {"lfm3", {"lfm3"}, {}, read_lfm3},
};

}  // namespace

std::span<const Family> lfm_families() {
  return kFamilies;
}

}  // namespace tenon
