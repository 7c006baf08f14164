// Mamba-2 and its hybrids with attention: Nemotron-H, Falcon-H1, Bamba.
#include "models/mamba2.h"

#include <cmath>

#include "models/experts.h"
#include "models/family.h"

namespace tenon {

Mamba2Spec read_mamba2_layer(ConfigReader& config, const Mamba2Keys& keys, const std::string& path,
                             int64_t hidden, double eps) {
  Mamba2Spec m;
  m.heads = config.positive(keys.heads);
  m.head_dim = config.positive(keys.head_dim);
  m.groups = config.positive(keys.groups);
  m.state = config.positive(keys.state);
  config.require(m.heads % m.groups == 0, keys.heads, "must be a multiple of the number of groups");
  const int64_t convolved = m.width() + 2 * m.groups * m.state;
  const bool bias = config.flag_or(keys.bias, false);
  m.in = {path + ".in_proj", hidden, m.width() + convolved + m.heads, bias};
  m.out = {path + ".out_proj", m.width(), hidden, bias};
  m.conv = {path + ".conv1d", convolved, config.positive(keys.taps), config.flag_or(keys.conv_bias, true)};
  m.a_log = path + ".A_log";
  m.d = path + ".D";
  m.dt_bias = path + ".dt_bias";
  m.norm = {path + ".norm", m.width(), m.width() / m.groups, eps};
  m.norm.gate_first = true;
  if (!keys.dt_min.empty()) m.dt_min = config.number_or(keys.dt_min, 0.001);
  return m;
}

void check_mamba2_keys(ConfigReader& config, std::string_view activation_key) {
  for (const char* key :
       {"chunk_size", "mamba_chunk_size", "expand", "mamba_expand", "time_step_min", "time_step_max",
        "time_step_floor", "time_step_rank", "rescale_prenorm_residual", "residual_in_fp32",
        "use_mamba_kernels", "use_mem_eff_path", "mamba_ssm_cache_dtype", "num_logits_to_keep"}) {
    config.ignore(key);
  }
  for (const std::string_view key : {activation_key, std::string_view("mamba_hidden_act")}) {
    const std::string name = config.text_or(key, "silu");
    config.require(name == "silu" || name == "swish", key, "must be silu for state-space layers");
  }
  const std::vector<double> limits = config.numbers_or_empty("time_step_limit");
  const bool open = limits.empty() || (limits.size() == 2 && limits[0] == 0 && std::isinf(limits[1]));
  config.require(open, "time_step_limit", "must be 0 and infinity");
}

namespace {

Result<ModelSpec> read_mamba2(ConfigReader& config) {
  DecoderTraits traits;
  traits.names.embedding = "backbone.embeddings";
  traits.names.layers = "backbone.layers";
  traits.names.final_norm = "backbone.norm_f";
  traits.names.mixer_norm = "norm";
  traits.names.feed_forward_norm = "";
  traits.eps_key = "layer_norm_epsilon";
  traits.rope = false;
  traits.intermediate = 1;
  config.suppose("num_attention_heads", 1);
  check_mamba2_keys(config);
  ModelSpec spec = read_decoder(config, traits);
  const Mamba2Keys keys{"num_heads",   "head_dim",      "n_groups", "state_size",
                        "conv_kernel", "use_conv_bias", "use_bias"};
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    spec.blocks[i].mixer =
        read_mamba2_layer(config, keys, layer_path(traits, i) + ".mixer", spec.hidden, spec.final_norm.eps);
    spec.blocks[i].feed_forward = {};
  }
  return spec;
}

// Kinds of Nemotron-H's layers: by name, or one sign each (M, E, *, -).
std::vector<std::string> nemotron_layers(ConfigReader& config) {
  std::vector<std::string> kinds = config.texts_or_empty("layers_block_type");
  const std::string pattern = config.text_or("hybrid_override_pattern", "");
  for (size_t i = 0; kinds.empty() && i < pattern.size(); ++i) {
    const size_t at = std::string_view("ME*-").find(pattern[i]);
    constexpr std::string_view kKinds[] = {"linear_attention", "moe", "full_attention", "mlp"};
    config.require(at < 4, "hybrid_override_pattern", "has a sign that is not known");
    if (at >= 4) return {};
    kinds.emplace_back(kKinds[at]);
  }
  config.require(!kinds.empty(), "layers_block_type", "is missing");
  return kinds;
}

Result<ModelSpec> read_nemotron_h(ConfigReader& config) {
  const std::vector<std::string> kinds = nemotron_layers(config);
  DecoderTraits traits;
  traits.names.embedding = "model.embeddings";
  traits.names.final_norm = "model.norm_f";
  traits.names.attention = traits.names.mlp = "mixer";
  traits.names.mixer_norm = "norm";
  traits.names.feed_forward_norm = "norm";
  traits.eps_key = config.has("layer_norm_epsilon") ? "layer_norm_epsilon" : "norm_eps";
  traits.rope = false;
  traits.gated = false;
  traits.activation_key = "mlp_hidden_act";
  traits.activation = "relu2";
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.set_mlp_bias(config.flag_or("mlp_bias", false));
  config.suppose("num_hidden_layers", static_cast<int64_t>(std::max<size_t>(kinds.size(), 1)));
  check_mamba2_keys(config);
  config.ignore("layer_norm_epsilon");
  config.ignore("norm_eps");
  config.ignore("mamba_proj_bias");
  config.ignore("moe_shared_expert_overlap");
  config.ignore("mtp_layers_block_type");
  config.ignore("sliding_window");
  config.require(!config.has("moe_latent_size"), "moe_latent_size", "is not supported");
  config.require(!config.has("num_nextn_predict_layers") || config.integer("num_nextn_predict_layers") == 0,
                 "num_nextn_predict_layers", "is not supported");
  ModelSpec spec = read_decoder(config, traits);
  config.require(kinds.size() == spec.blocks.size(), "layers_block_type", "must have one entry a layer");
  if (!config.status().ok()) return spec;
  MoeSpec moe = read_deepseek_router(config);
  moe.gated = false;
  moe.inner.activation = mlp_of(spec.blocks[0]).activation;
  const ExpertSizes sizes{config.positive("n_routed_experts"), config.positive("moe_intermediate_size"),
                          config.positive_or("moe_shared_expert_intermediate_size", 0) *
                              config.positive_or("n_shared_experts", 1)};
  const ExpertNames names{
      .module = "mixer", .file = "mixer", .selection_bias = "gate.e_score_correction_bias"};
  const Mamba2Keys keys{"mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size",
                        "conv_kernel",     "use_conv_bias",  "use_bias", "time_step_min"};
  for (size_t i = 0; i < kinds.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    const bool feeds = kinds[i] == "mlp" || kinds[i] == "moe";
    if (kinds[i] == "moe") set_experts(spec, i, moe, names, sizes);
    if (feeds) {
      block.mixer = {};
      block.mixer_norm = {};
      continue;
    }
    block.feed_forward = {};
    block.feed_forward_norm = {};
    if (kinds[i] == "full_attention" || kinds[i] == "attention") continue;
    config.require(kinds[i] == "linear_attention" || kinds[i] == "mamba", "layers_block_type",
                   "has a kind that is not known: " + kinds[i]);
    block.mixer =
        read_mamba2_layer(config, keys, layer_path(traits, i) + ".mixer", spec.hidden, spec.final_norm.eps);
  }
  spec.renames.emplace_back("model.", "backbone.");
  for (auto& [name, blocks] : spec.stored) {
    for (StoredBlock& block : blocks) block.tensor.replace(0, std::string_view("model").size(), "backbone");
  }
  return spec;
}

DecoderTraits bamba_traits(ConfigReader& config) {
  DecoderTraits traits;
  traits.names.final_norm = "model.final_layernorm";
  traits.names.mlp = "feed_forward";
  traits.names.feed_forward_norm = "pre_ff_layernorm";
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.set_mlp_bias(config.flag_or("mlp_bias", false));
  return traits;
}

Result<ModelSpec> read_bamba(ConfigReader& config) {
  DecoderTraits traits = bamba_traits(config);
  traits.rotary = config.number_or("attn_rotary_emb", 32) / 64;
  config.ignore("z_loss_coefficient");
  check_mamba2_keys(config);
  ModelSpec spec = read_decoder(config, traits);
  std::vector<bool> attends(spec.blocks.size(), false);
  for (double index : config.numbers_or_empty("attn_layer_indices")) {
    config.require(index >= 0 && index < static_cast<double>(attends.size()), "attn_layer_indices",
                   "names a layer that is not there");
    if (config.status().ok()) attends[static_cast<size_t>(index)] = true;
  }
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (attends[i]) continue;
    spec.blocks[i].mixer =
        read_mamba2_layer(config, {}, layer_path(traits, i) + ".mamba", spec.hidden, spec.final_norm.eps);
  }
  return spec;
}

// Falcon-H1: attention and Mamba-2 side by side in every layer, and a multiplier on everything.
Result<ModelSpec> read_falcon_h1(ConfigReader& config) {
  DecoderTraits traits = bamba_traits(config);
  traits.o_bias = config.flag_or("projectors_bias", false);
  check_mamba2_keys(config);
  for (const char* key : {"mamba_d_ssm", "attn_layer_indices", "mamba_use_mlp", "mlp_expansion_factor"})
    config.ignore(key);
  ModelSpec spec = read_decoder(config, traits);
  spec.embedding_scale = config.number_or("embedding_multiplier", 1);
  spec.logit_scale = config.number_or("lm_head_multiplier", 1);
  const double in = config.number_or("attention_in_multiplier", 1);
  const double state_in = config.number_or("ssm_in_multiplier", 1);
  const std::vector<double> mlp_scales = config.numbers_or_empty("mlp_multipliers");
  const std::vector<double> parts = config.numbers_or_empty("ssm_multipliers");
  config.require(mlp_scales.empty() || mlp_scales.size() == 2, "mlp_multipliers", "must be two numbers");
  config.require(parts.empty() || parts.size() == 5, "ssm_multipliers", "must be five numbers");
  const bool normed = config.flag_or("mamba_rms_norm", false);
  const bool norm_first = config.flag_or("mamba_norm_before_gate", true);
  if (!config.status().ok()) return spec;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    a.q.scale = a.v.scale = in;
    a.k.scale = in * config.number_or("key_multiplier", 1);
    a.o.scale = config.number_or("attention_out_multiplier", 1);
    MlpSpec& mlp = mlp_of(spec.blocks[i]);
    if (!mlp_scales.empty()) mlp.gate.scale = mlp_scales[0], mlp.down.scale = mlp_scales[1];
    Mamba2Spec m =
        read_mamba2_layer(config, {}, layer_path(traits, i) + ".mamba", spec.hidden, spec.final_norm.eps);
    m.in.scale = state_in;
    m.in_scales.assign(parts.begin(), parts.end());
    m.out.bias = traits.o_bias;
    m.out.scale = config.number_or("ssm_out_multiplier", 1);
    m.norm.gate_first = !norm_first;
    if (!normed) m.norm = {};
    spec.blocks[i].beside = std::move(m);
  }
  return spec;
}

constexpr std::array kMamba2Gguf = {GgufLayout{"mamba2"}};
constexpr std::array kNemotronHGguf = {GgufLayout{"nemotron_h"}, GgufLayout{"nemotron_h_moe"}};
constexpr std::array kFalconH1Gguf = {GgufLayout{"falcon-h1"}};
constexpr Family kFamilies[] = {
    {"mamba2", {"mamba2"}, kMamba2Gguf, read_mamba2},
    {"nemotron_h", {"nemotron_h"}, kNemotronHGguf, read_nemotron_h},
    {"bamba", {"bamba"}, {}, read_bamba},
    {"falcon_h1", {"falcon_h1"}, kFalconH1Gguf, read_falcon_h1},
};

}  // namespace

std::span<const Family> mamba2_families() {
  return kFamilies;
}

}  // namespace tenon
