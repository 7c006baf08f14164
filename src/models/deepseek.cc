// Multi-head latent attention: DeepSeek V2 and V3 and what builds on them (MiniCPM3, Youtu, GLM 4 MoE Lite,
// Mistral 4, Sarvam).
#include <algorithm>
#include <cmath>

#include "models/family.h"
#include "models/latent.h"

namespace tenon {
namespace {

Result<ModelSpec> read_deepseek_v2(ConfigReader& config) {
  ModelSpec spec = read_latent_decoder(config, true);
  MoeSpec moe;
  moe.top_k = {.k = config.positive("num_experts_per_tok"),
               .groups = config.positive_or("n_group", 1),
               .group_limit = config.positive_or("topk_group", 1),
               .group_sum = 1};
  const std::string method = config.text_or("topk_method", "greedy");
  config.require(method == "greedy" || method == "group_limited_greedy", "topk_method",
                 "must be greedy or group_limited_greedy");
  if (method == "greedy") moe.top_k.groups = moe.top_k.group_limit = 1;
  config.require(!config.flag_or("norm_topk_prob", false), "norm_topk_prob", "must be false here");
  config.require(config.text_or("scoring_func", "softmax") == "softmax", "scoring_func", "must be softmax");
  moe.scale = config.number_or("routed_scaling_factor", 1);
  set_latent_experts(config, spec, moe, {});
  return spec;
}

Result<ModelSpec> read_deepseek_v3(ConfigReader& config) {
  ModelSpec spec = read_latent_decoder(config, config.flag_or("rope_interleave", true));
  set_latent_experts(config, spec, read_deepseek_router(config),
                     {.selection_bias = "gate.e_score_correction_bias"});
  return spec;
}

// DeepSeek-V3.2 and GLM 5: an indexer chooses each token's keys, in GLM on some layers, whose choice the next
// ones take over.
Result<ModelSpec> read_deepseek_v32(ConfigReader& config) {
  ModelSpec spec = read_latent_decoder(config, true);
  set_latent_experts(config, spec, read_deepseek_router(config),
                     {.selection_bias = "gate.e_score_correction_bias"});
  for (const char* key : {"layer_types", "rope_interleave", "index_topk_freq", "index_skip_topk_offset",
                          "indexer_rope_interleave"})
    config.ignore(key);
  if (!config.status().ok() || spec.ropes.empty()) return spec;
  spec.ropes.push_back(spec.ropes[0]);
  spec.ropes[1].interleaved = config.text_or("model_type", "") == "glm_moe_dsa";
  IndexerTraits traits{.rope = 1};
  traits.types = config.texts_or_empty("indexer_types");
  set_indexers(config, spec, traits);
  return spec;
}

// Mistral 4: queries scaled by position, a router without bias.
Result<ModelSpec> read_mistral4(ConfigReader& config) {
  ModelSpec spec = read_latent_decoder(config, config.flag_or("rope_interleave", true));
  MoeSpec moe;
  moe.top_k = {.k = config.positive("num_experts_per_tok"),
               .groups = config.positive_or("n_group", 1),
               .group_limit = config.positive_or("topk_group", 1),
               .group_sum = 2};
  moe.renormalise = config.flag_or("norm_topk_prob", true);
  moe.renormalise_eps = 1e-20;
  moe.scale = config.number_or("routed_scaling_factor", 1);
  set_latent_experts(config, spec, moe, {.stacked = true});
  auto parameters = config.object("rope_parameters");
  if (!parameters || !parameters->has("llama_4_scaling_beta")) return spec;
  const PositionScale scale{.beta = parameters->number("llama_4_scaling_beta"),
                            .period = parameters->positive("original_max_position_embeddings")};
  for (BlockSpec& block : spec.blocks) std::get<LatentAttentionSpec>(block.mixer).q_scale = scale;
  RETURN_IF_ERROR(parameters->status());
  return spec;
}

// A.X K1: DeepSeek-V3 with a norm after each MoE.
Result<ModelSpec> read_axk1(ConfigReader& config) {
  ASSIGN_OR_RETURN(ModelSpec spec, read_deepseek_v3(config));
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (!std::holds_alternative<MoeSpec>(spec.blocks[i].feed_forward)) continue;
    spec.blocks[i].feed_forward_post_norm = spec.final_norm;
    spec.blocks[i].feed_forward_post_norm.path = "model.layers." + std::to_string(i) + ".post_mlp_layernorm";
  }
  return spec;
}

// A.X K2: DeepSeek-V3.2 with norms that gate their output through a low rank, and queries that bring a gate
// of the output along.
Result<ModelSpec> read_axk2(ConfigReader& config) {
  ModelSpec spec = read_latent_decoder(config, true);
  set_latent_experts(config, spec, read_deepseek_router(config),
                     {.selection_bias = "gate.e_score_correction_bias"});
  config.ignore("layer_types");
  const int64_t rank = config.positive("gated_norm_rank");
  if (!config.status().ok() || spec.ropes.empty()) return spec;
  spec.ropes.push_back(spec.ropes[0]);
  spec.ropes[1].interleaved = false;
  set_indexers(config, spec, {.rope = 1});
  const auto add_gate = [&](NormSpec& norm) {
    norm.gate = {{norm.path + ".W_down", spec.hidden, rank}, {norm.path + ".W_up", rank, spec.hidden}};
    norm.path += ".norm";
  };
  for (size_t i = 0; i < spec.blocks.size() && config.status().ok(); ++i) {
    BlockSpec& block = spec.blocks[i];
    auto& a = std::get<LatentAttentionSpec>(block.mixer);
    a.gate_kind = GateKind::sigmoid;
    a.q_gate = {"model.layers." + std::to_string(i) + ".self_attn.q_gate_proj", 2 * a.q_b.in,
                a.heads * (a.nope_dim + a.rope_dim + a.v_head_dim)};
    add_gate(block.mixer_norm);
    if (std::holds_alternative<MoeSpec>(block.feed_forward)) add_gate(block.feed_forward_norm);
  }
  spec.renames.emplace_back("q_gate_proj", "q_b_proj");
  return spec;
}

Result<ModelSpec> read_youtu(ConfigReader& config) {
  config.ignore("embedding_initializer_range");
  return read_latent_decoder(config, config.flag_or("rope_interleave", true));
}

Result<ModelSpec> read_minicpm3(ConfigReader& config) {
  const int64_t share = config.positive("hidden_size") / config.positive("num_attention_heads");
  config.suppose("v_head_dim", std::max<int64_t>(1, share));
  ModelSpec spec = read_latent_decoder(config, false);
  const double layers = static_cast<double>(spec.blocks.size());
  spec.embedding_scale = config.number_or("scale_emb", 1);
  const double residual = config.number_or("scale_depth", 1) / std::sqrt(layers);
  for (BlockSpec& block : spec.blocks) block.residual_scale = residual;
  spec.logit_scale = static_cast<double>(config.positive_or("dim_model_base", spec.hidden)) /
                     static_cast<double>(spec.hidden);
  return spec;
}

constexpr std::array kDeepseek2Gguf = {GgufLayout{"deepseek2"}};
constexpr std::array kMinicpm3Gguf = {GgufLayout{"minicpm3"}};

constexpr Family kFamilies[] = {
    {"deepseek_v2", {"deepseek_v2"}, kDeepseek2Gguf, read_deepseek_v2},
    {"deepseek_v3", {"deepseek_v3", "glm4_moe_lite", "sarvam_mla"}, kDeepseek2Gguf, read_deepseek_v3},
    {"deepseek_v32", {"deepseek_v32", "glm_moe_dsa"}, {}, read_deepseek_v32},
    {"mistral4", {"mistral4"}, {}, read_mistral4},
    {"axk1", {"axk1"}, {}, read_axk1},
    {"axk2", {"axk2"}, {}, read_axk2},
    {"youtu", {"youtu"}, kDeepseek2Gguf, read_youtu},
    {"minicpm3", {"minicpm3"}, kMinicpm3Gguf, read_minicpm3},
};

}  // namespace

std::span<const Family> deepseek_families() {
  return kFamilies;
}

}  // namespace tenon
