// Mixtures of experts whose layers differ: sliding and full attention, dense first layers, gates, sinks.
// HunYuan 3, AFMoE, Flint, Kolibri, Laguna, MiMo V2 Flash, Mellum, Sarvam MoE, Command A MoE.
#include <cmath>

#include "models/experts.h"
#include "models/family.h"
#include "models/rope.h"

namespace tenon {
namespace {

DecoderTraits normed_traits(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.qk_norm = QkNorm::head;
  return traits;
}

MoeSpec sigmoid_router(ConfigReader& config, double scale) {
  MoeSpec moe;
  moe.scores = RouterScores::sigmoid;
  moe.top_k.k = config.positive("num_experts_per_tok");
  moe.renormalise = true;
  moe.renormalise_eps = 1e-20;
  moe.scale = scale;
  return moe;
}

int64_t expert_count(ConfigReader& config) {
  for (const char* key : {"num_experts", "num_local_experts"}) {
    if (config.has(key)) return config.positive(key);
  }
  return config.positive("n_routed_experts");
}

// Sliding layers have a window; the others have no rope where `rope_on_full` is false.
void set_mixed_attention(ConfigReader& config, ModelSpec& spec, bool rope_on_full) {
  const std::vector<int64_t> windows = read_windows(config);
  set_windows(spec, windows);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (windows[i] == 0 && !rope_on_full) attention_of(spec.blocks[i]).rope = -1;
  }
}

// Rope 0 for full layers, rope 1 for sliding ones.
void set_rope_by_kind(ConfigReader& config, ModelSpec& spec, int64_t head_dim) {
  const std::vector<bool> sliding = layers_of_kind(config, "sliding_attention");
  spec.ropes.push_back(read_rope(
      config,
      {.head_dim = head_dim, .max_positions = spec.max_positions, .layer_type = "sliding_attention"}));
  for (size_t i = 0; i < spec.blocks.size() && i < sliding.size(); ++i) {
    attention_of(spec.blocks[i]).rope = sliding[i] ? 1 : 0;
  }
}

Result<ModelSpec> read_hy_v3(ConfigReader& config) {
  DecoderTraits traits = normed_traits(config);
  traits.set_mlp_bias(config.flag_or("mlp_bias", false));
  ModelSpec spec = read_decoder(config, traits);
  config.ignore("enable_moe_fp32_combine");
  const MoeSpec moe = sigmoid_router(config, config.number_or("router_scaling_factor", 1));
  const int64_t width = config.positive("moe_intermediate_size");
  const ExpertSizes sizes{expert_count(config), width, width * config.positive_or("num_shared_experts", 1)};
  const ExpertNames names{
      .router = "router.gate", .selection_bias = "expert_bias", .stored_shared = "shared_mlp"};
  const std::vector<bool> dense = dense_mlp_layers(config, spec.blocks.size());
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (!dense[i]) set_experts(spec, i, moe, names, sizes);
  }
  return spec;
}

Result<ModelSpec> read_afmoe(ConfigReader& config) {
  DecoderTraits traits = normed_traits(config);
  traits.names.mixer_post_norm = "post_attention_layernorm";
  traits.names.feed_forward_norm = "pre_mlp_layernorm";
  traits.names.feed_forward_post_norm = "post_mlp_layernorm";
  ModelSpec spec = read_decoder(config, traits);
  config.ignore("global_attn_every_n_layers");
  set_mixed_attention(config, spec, false);
  if (config.flag_or("mup_enabled", false))
    spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden));
  MoeSpec moe = sigmoid_router(config, config.number_or("route_scale", 1));
  moe.router_is_linear = true;
  const int64_t width = config.positive("moe_intermediate_size");
  const ExpertSizes sizes{expert_count(config), width, width * config.positive_or("num_shared_experts", 1)};
  const size_t dense =
      config.has("num_dense_layers") ? static_cast<size_t>(config.integer("num_dense_layers")) : 0;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    a.gate = {layer_path(traits, i) + ".self_attn.gate_proj", spec.hidden, a.o.in};
    a.gate_kind = GateKind::sigmoid;
    if (i >= dense)
      set_experts(spec, i, moe, {.router = "router.gate", .selection_bias = "expert_bias"}, sizes);
  }
  return spec;
}

Result<ModelSpec> read_flint(ConfigReader& config) {
  const DecoderTraits traits = normed_traits(config);
  ModelSpec spec = read_decoder(config, traits);
  set_mixed_attention(config, spec, false);
  MoeSpec moe = sigmoid_router(config, 1);
  moe.renormalise = config.flag_or("norm_topk_prob", true);
  moe.renormalise_eps = 0;
  const ExpertSizes sizes{expert_count(config), config.positive("moe_intermediate_size"),
                          config.positive("shared_expert_intermediate_size")};
  const std::vector<double> dense = config.numbers_or_empty("mlp_only_layers");
  config.require(config.positive_or("decoder_sparse_step", 1) == 1, "decoder_sparse_step", "must be 1");
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    attention_of(spec.blocks[i]).attend.sinks = layer_path(traits, i) + ".self_attn.softmax_offset";
    bool is_dense = false;
    for (double each : dense) is_dense = is_dense || each == static_cast<double>(i);
    if (!is_dense) set_experts(spec, i, moe, {.shared = "shared_expert"}, sizes);
  }
  return spec;
}

Result<ModelSpec> read_kolibri(ConfigReader& config) {
  DecoderTraits traits = normed_traits(config);
  traits.names.mixer_post_norm = "post_attn_norm";
  traits.names.feed_forward_post_norm = "post_ffn_norm";
  traits.intermediate = 1;  // no layer is dense
  ModelSpec spec = read_decoder(config, traits);
  set_mixed_attention(config, spec, false);
  MoeSpec moe = sigmoid_router(config, 1);
  moe.scores = RouterScores::sigmoid_of_chosen;
  moe.bias_on_logits = true;
  moe.renormalise = config.flag_or("norm_topk_prob", false);
  moe.renormalise_eps = 0;
  const ExpertSizes sizes{expert_count(config), config.positive("moe_intermediate_size"),
                          config.positive("shared_expert_intermediate_size")};
  const ExpertNames names{.selection_bias = "gate.e_score_correction_bias",
                          .stored_bias = "moe.router.expert_bias"};
  for (size_t i = 0; i < spec.blocks.size(); ++i) set_experts(spec, i, moe, names, sizes);
  return spec;
}

Result<ModelSpec> read_laguna(ConfigReader& config) {
  const DecoderTraits traits = normed_traits(config);
  ModelSpec spec = read_decoder(config, traits);
  set_mixed_attention(config, spec, true);
  config.require(config.flag_or("gating", true), "gating", "must be true");
  config.require(config.number_or("moe_router_logit_softcapping", 0) == 0, "moe_router_logit_softcapping",
                 "is not supported");
  MoeSpec moe = sigmoid_router(config, config.number_or("moe_routed_scaling_factor", 1));
  moe.renormalise_eps = 0;
  moe.scale_inputs = config.flag_or("moe_apply_router_weight_on_input", false);
  config.require(!moe.scale_inputs, "moe_apply_router_weight_on_input", "is not supported");
  const std::vector<double> heads = config.numbers_or_empty("num_attention_heads_per_layer");
  const std::vector<bool> dense = dense_mlp_layers(config, spec.blocks.size());
  config.require(heads.empty() || heads.size() == spec.blocks.size(), "num_attention_heads_per_layer",
                 "must have one entry a layer");
  if (!config.status().ok() || spec.blocks.empty()) return spec;
  set_rope_by_kind(config, spec, attention_of(spec.blocks[0]).head_dim);
  const ExpertSizes sizes{expert_count(config), config.positive("moe_intermediate_size"),
                          config.positive("shared_expert_intermediate_size")};
  const ExpertNames names{.selection_bias = "experts.e_score_correction_bias",
                          .stored_shared = "shared_expert"};
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    if (!heads.empty()) a.heads = static_cast<int64_t>(heads[i]);
    config.require(a.heads > 0 && a.heads % a.kv_heads == 0, "num_attention_heads_per_layer",
                   "must be multiples of num_key_value_heads");
    a.q.out = a.o.in = a.heads * a.head_dim;
    a.gate = {layer_path(traits, i) + ".self_attn.g_proj", spec.hidden, a.heads};
    a.gate_kind = GateKind::softplus;
    if (!dense[i]) set_experts(spec, i, moe, names, sizes);
  }
  return spec;
}

Result<ModelSpec> read_mimo(ConfigReader& config) {
  DecoderTraits traits = normed_traits(config);
  traits.qk_norm = QkNorm::none;
  ModelSpec spec = read_decoder(config, traits);
  set_mixed_attention(config, spec, true);
  const std::vector<bool> sliding = layers_of_kind(config, "sliding_attention");
  if (!config.status().ok() || spec.blocks.empty()) return spec;
  set_rope_by_kind(config, spec, attention_of(spec.blocks[0]).head_dim);
  const MoeSpec moe = read_deepseek_router(config);
  const ExpertSizes sizes{expert_count(config), config.positive("moe_intermediate_size")};
  const std::vector<bool> dense = dense_mlp_layers(config, spec.blocks.size());
  const int64_t v_dim = config.positive_or("v_head_dim", attention_of(spec.blocks[0]).head_dim);
  const double v_scale = config.number_or("attention_value_scale", 1);
  const ExpertNames names{.selection_bias = "gate.e_score_correction_bias"};
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    const bool slides = i < sliding.size() && sliding[i];
    if (slides) a.kv_heads *= 2;
    a.v_head_dim = v_dim;
    a.v_scale = v_scale;
    a.k.out = a.kv_heads * a.head_dim;
    a.v.out = a.kv_heads * v_dim;
    a.o.in = a.heads * v_dim;
    if (slides) a.attend.sinks = layer_path(traits, i) + ".self_attn.attention_sink_bias";
    if (!dense[i]) set_experts(spec, i, moe, names, sizes);
  }
  return spec;
}

Result<ModelSpec> read_mellum(ConfigReader& config) {
  ModelSpec spec = read_decoder(config, normed_traits(config));
  set_mixed_attention(config, spec, true);
  if (!config.status().ok() || spec.blocks.empty()) return spec;
  set_rope_by_kind(config, spec, attention_of(spec.blocks[0]).head_dim);
  MoeSpec moe;
  moe.top_k.k = config.positive("num_experts_per_tok");
  moe.renormalise = config.flag_or("norm_topk_prob", true);
  const ExpertSizes sizes{expert_count(config), config.positive("moe_intermediate_size")};
  const std::vector<bool> dense = dense_mlp_layers(config, spec.blocks.size());
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (!dense[i]) set_experts(spec, i, moe, {}, sizes);
  }
  return spec;
}

// The file fuses q, k and v, which are apart in modules.
void split_stored_qkv(ModelSpec& spec, const AttentionSpec& a, const std::string& tensor) {
  int64_t row = 0;
  for (const LinearSpec* linear : {&a.q, &a.k, &a.v}) {
    StoredBlock block;
    block.tensor = tensor;
    block.rows = linear->out;
    block.columns = linear->in;
    block.from_row = row;
    row += linear->out;
    spec.stored[linear->path + ".weight"] = {block};
  }
}

Result<ModelSpec> read_sarvam_moe(ConfigReader& config) {
  DecoderTraits traits = normed_traits(config);
  if (!config.flag_or("use_qk_norm", true)) traits.qk_norm = QkNorm::none;
  config.require(!traits.q_bias, "attention_bias", "is not supported here");
  ModelSpec spec = read_decoder(config, traits);
  config.ignore("num_nextn_predict_layers");
  const MoeSpec moe = read_deepseek_router(config);
  const int64_t width = config.positive("moe_intermediate_size");
  const ExpertSizes sizes{expert_count(config), width, width * config.positive_or("n_shared_experts", 1)};
  const std::vector<bool> dense = dense_mlp_layers(config, spec.blocks.size());
  const ExpertNames names{.selection_bias = "gate.e_score_correction_bias",
                          .stored_bias = "mlp.gate.expert_bias"};
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    split_stored_qkv(spec, attention_of(spec.blocks[i]),
                     layer_path(traits, i) + ".attention.query_key_value.weight");
    if (!dense[i]) set_experts(spec, i, moe, names, sizes);
  }
  for (const auto& [from, to] : {std::pair{"model.embed_tokens", "model.word_embeddings"},
                                 {"self_attn.o_proj", "attention.dense"},
                                 {"self_attn.q_norm", "attention.query_layernorm"},
                                 {"self_attn.k_norm", "attention.key_layernorm"}}) {
    spec.renames.emplace_back(from, to);
  }
  return spec;
}

Result<ModelSpec> read_cohere2_moe(ConfigReader& config) {
  DecoderTraits traits = normed_traits(config);
  traits.qk_norm = QkNorm::none;
  traits.norm = NormKind::layer;
  traits.eps_key = "layer_norm_eps";
  traits.interleaved = true;
  traits.parallel = true;
  traits.tied = true;
  traits.names.feed_forward_norm = "";
  config.alias("expert_size", "intermediate_size");
  config.alias("intermediate_size", "prefix_dense_intermediate_size");
  traits.intermediate = config.positive("expert_size");
  ModelSpec spec = read_decoder(config, traits);
  config.ignore("rope_theta");
  spec.logit_scale = config.number_or("logit_scale", 1);
  set_mixed_attention(config, spec, false);
  const std::vector<bool> dense = dense_mlp_layers(config, spec.blocks.size());
  const bool prefix_rope = config.positive_or("prefix_dense_sliding_window_pattern", 1) == 1;
  MoeSpec moe;
  moe.top_k.k = config.positive("num_experts_per_tok");
  const std::string scores = config.text_or("expert_selection_fn", "softmax");
  const bool sigmoid = scores == "sigmoid";
  config.require(sigmoid || scores == "softmax", "expert_selection_fn", "must be softmax or sigmoid");
  const bool renormalise = config.flag_or("norm_topk_prob", true);
  moe.scores = sigmoid ? RouterScores::sigmoid_of_chosen : RouterScores::softmax_of_chosen;
  moe.renormalise = sigmoid && renormalise;
  const std::string sum = config.text_or("shared_expert_combination_strategy", "sum");
  config.require(sum == "sum" || sum == "average", "shared_expert_combination_strategy",
                 "must be sum or average");
  if (sum == "average") moe.sum_scale = 0.5;
  const int64_t width = config.positive("expert_size");
  const ExpertSizes sizes{
      expert_count(config), width,
      config.has("num_shared_experts") ? width * config.integer("num_shared_experts") : 0};
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (dense[i] && prefix_rope) attention_of(spec.blocks[i]).rope = 0;
    if (!dense[i]) set_experts(spec, i, moe, {}, sizes);
  }
  return spec;
}

constexpr std::array kAfmoeGguf = {GgufLayout{"afmoe"}};

constexpr Family kFamilies[] = {
    {"hy_v3", {"hy_v3"}, {}, read_hy_v3},
    {"afmoe", {"afmoe"}, kAfmoeGguf, read_afmoe},
    {"flint", {"flint"}, {}, read_flint},
    {"kolibri1", {"kolibri1"}, {}, read_kolibri},
    {"laguna", {"laguna"}, {}, read_laguna},
    {"mimo_v2_flash", {"mimo_v2_flash"}, {}, read_mimo},
    {"mellum", {"mellum"}, {}, read_mellum},
    {"sarvam_moe", {"sarvam_moe"}, {}, read_sarvam_moe},
    {"cohere2_moe", {"cohere2_moe"}, {}, read_cohere2_moe},
};

}  // namespace

std::span<const Family> moe_mixed_families() {
  return kFamilies;
}

}  // namespace tenon
