// Multi-head latent attention: DeepSeek V2 and V3 and what builds on them (MiniCPM3, Youtu, GLM 4 MoE Lite,
// Mistral 4, Sarvam).
#include <cmath>

#include "models/experts.h"
#include "models/family.h"
#include "models/rope.h"

namespace tenon {
namespace {

struct LatentSizes {
  int64_t heads, q_rank, kv_rank, nope, rope, v;
};

LatentAttentionSpec latent_attention(const ModelSpec& spec, const LatentSizes& s, const std::string& path,
                                     double eps, bool bias) {
  LatentAttentionSpec a;
  a.heads = s.heads;
  a.nope_dim = s.nope;
  a.rope_dim = s.rope;
  a.v_head_dim = s.v;
  const int64_t q_out = s.heads * (s.nope + s.rope);
  if (s.q_rank > 0) {
    a.q_a = {path + ".q_a_proj", spec.hidden, s.q_rank, bias};
    a.q_a_norm = rms_norm_spec(path + ".q_a_layernorm", s.q_rank, eps);
    a.q_b = {path + ".q_b_proj", s.q_rank, q_out};
  } else {
    a.q = {path + ".q_proj", spec.hidden, q_out};
  }
  a.kv_a = {path + ".kv_a_proj_with_mqa", spec.hidden, s.kv_rank + s.rope, bias};
  a.kv_a_norm = rms_norm_spec(path + ".kv_a_layernorm", s.kv_rank, eps);
  a.kv_b = {path + ".kv_b_proj", s.kv_rank, s.heads * (s.nope + s.v)};
  a.o = {path + ".o_proj", s.heads * s.v, spec.hidden, bias};
  a.rope = 0;
  a.attend.scale = 1 / std::sqrt(static_cast<double>(s.nope + s.rope));
  return a;
}

// A decoder whose attention is latent; `interleaved` pairs rotate neighbours.
ModelSpec read_latent_decoder(ConfigReader& config, bool interleaved) {
  LatentSizes s;
  s.heads = config.positive("num_attention_heads");
  s.q_rank = config.positive_or("q_lora_rank", 0);
  s.kv_rank = config.positive("kv_lora_rank");
  s.nope = config.positive("qk_nope_head_dim");
  s.rope = config.positive("qk_rope_head_dim");
  s.v = config.positive("v_head_dim");
  config.ignore("qk_head_dim");
  config.ignore("head_dim");
  config.ignore("num_nextn_predict_layers");
  config.alias("head_dim", "qk_rope_head_dim");
  const bool bias = config.flag_or("attention_bias", false);
  DecoderTraits traits;
  traits.set_mlp_bias(config.flag_or("mlp_bias", false));
  traits.rope = false;
  ModelSpec spec = read_decoder(config, traits);
  if (spec.blocks.empty()) return spec;
  const RopeSizes whole{.head_dim = s.rope, .max_positions = spec.max_positions, .whole = true};
  spec.ropes.push_back(read_rope(config, whole));
  spec.ropes[0].interleaved = interleaved;
  const double factor = yarn_score_factor(config);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    LatentAttentionSpec a =
        latent_attention(spec, s, layer_path(traits, i) + ".self_attn", spec.final_norm.eps, bias);
    // Norms of latents have transformers' default here, whatever the model's is.
    a.q_a_norm.eps = a.kv_a_norm.eps = 1e-6;
    a.attend.scale *= factor;
    spec.blocks[i].mixer = std::move(a);
  }
  return spec;
}

void set_latent_experts(ConfigReader& config, ModelSpec& spec, const MoeSpec& moe, const ExpertNames& names) {
  const int64_t width = config.positive("moe_intermediate_size");
  const ExpertSizes sizes{config.positive("n_routed_experts"), width,
                          width * config.positive_or("n_shared_experts", 1)};
  const std::vector<bool> dense = dense_mlp_layers(config, spec.blocks.size());
  config.require(config.positive_or("moe_layer_freq", 1) == 1, "moe_layer_freq", "must be 1");
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (!dense[i]) set_experts(spec, i, moe, names, sizes);
  }
}

Result<ModelSpec> read_deepseek_v2(ConfigReader& config) {
  ModelSpec spec = read_latent_decoder(config, true);
  MoeSpec moe;
  moe.top_k = {.k = config.positive("num_experts_per_tok"),
               .groups = config.positive_or("n_group", 1),
               .group_limit = config.positive_or("topk_group", 1),
               .group_sum = 1};
  if (config.text_or("topk_method", "greedy") == "greedy") moe.top_k.groups = moe.top_k.group_limit = 1;
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

Result<ModelSpec> read_youtu(ConfigReader& config) {
  config.ignore("embedding_initializer_range");
  return read_latent_decoder(config, config.flag_or("rope_interleave", true));
}

Result<ModelSpec> read_minicpm3(ConfigReader& config) {
  ModelSpec spec = read_latent_decoder(config, false);
  const double layers = static_cast<double>(spec.blocks.size());
  spec.embedding_scale = config.number_or("scale_emb", 1);
  const double residual = config.number_or("scale_depth", 1) / std::sqrt(layers);
  for (BlockSpec& block : spec.blocks) block.residual_scale = residual;
  spec.logit_scale = static_cast<double>(config.positive_or("dim_model_base", spec.hidden)) /
                     static_cast<double>(spec.hidden);
  return spec;
}

constexpr Family kFamilies[] = {
    {"deepseek_v2", {"deepseek_v2"}, {}, read_deepseek_v2},
    {"deepseek_v3", {"deepseek_v3", "glm4_moe_lite", "sarvam_mla"}, {}, read_deepseek_v3},
    {"mistral4", {"mistral4"}, {}, read_mistral4},
    {"axk1", {"axk1"}, {}, read_axk1},
    {"youtu", {"youtu"}, {}, read_youtu},
    {"minicpm3", {"minicpm3"}, {}, read_minicpm3},
};

}  // namespace

std::span<const Family> deepseek_families() {
  return kFamilies;
}

}  // namespace tenon
