// Layers of the gated delta rule with some of attention: Qwen3-Next, Qwen3.5, OLMo Hybrid, Lara
// Mini.
#include "models/delta.h"
#include "models/experts.h"
#include "models/family.h"

namespace tenon {

void split_stored_conv(ModelSpec& spec, const DeltaSpec& delta, const std::string& path) {
  for (const char* name : {"q_conv1d", "k_conv1d", "v_conv1d"}) {
    StoredBlock block;
    block.tensor = path + "." + name + ".weight";
    block.columns = delta.conv.taps;
    spec.stored[delta.conv.path + ".weight"].push_back(block);
  }
}

namespace {

// Layers of the delta rule, by `layer_types` or every one but each `full_attention_interval`-th.
std::vector<bool> delta_layers(ConfigReader& config, size_t layers) {
  std::vector<bool> delta = layers_of_kind(config, "linear_attention");
  const size_t interval = static_cast<size_t>(config.positive_or("full_attention_interval", 4));
  if (delta.size() == layers) return delta;
  delta.resize(layers);
  for (size_t i = 0; i < layers; ++i) delta[i] = (i + 1) % interval != 0;
  return delta;
}

DeltaSpec delta_sizes(ConfigReader& config, const ModelSpec& spec, const std::string& path) {
  DeltaSpec delta;
  delta.key_heads = config.positive("linear_num_key_heads");
  delta.heads = config.positive("linear_num_value_heads");
  delta.key_dim = config.positive("linear_key_head_dim");
  delta.value_dim = config.positive("linear_value_head_dim");
  config.require(delta.heads % delta.key_heads == 0, "linear_num_value_heads",
                 "must be a multiple of linear_num_key_heads");
  const int64_t keys = delta.key_heads * delta.key_dim, values = delta.heads * delta.value_dim;
  delta.conv = {path + ".conv1d", 2 * keys + values, config.positive("linear_conv_kernel_dim")};
  delta.decay_kind = {path + ".A_log", path + ".dt_bias"};
  delta.norm = {path + ".norm", delta.value_dim, delta.value_dim, spec.final_norm.eps};
  delta.out = {path + ".out_proj", values, spec.hidden};
  return delta;
}

// All projections in two matrices, by key head.
DeltaSpec fused_delta(ConfigReader& config, const ModelSpec& spec, const std::string& path) {
  DeltaSpec delta = delta_sizes(config, spec, path);
  const int64_t keys = delta.key_heads * delta.key_dim, values = delta.heads * delta.value_dim;
  delta.qkvz = {path + ".in_proj_qkvz", spec.hidden, 2 * keys + 2 * values};
  delta.ba = {path + ".in_proj_ba", spec.hidden, 2 * delta.heads};
  return delta;
}

// Projections apart.
DeltaSpec separate_delta(ConfigReader& config, const ModelSpec& spec, const std::string& path) {
  DeltaSpec delta = delta_sizes(config, spec, path);
  const int64_t keys = delta.key_heads * delta.key_dim, values = delta.heads * delta.value_dim;
  delta.qkv = {path + ".in_proj_qkv", spec.hidden, 2 * keys + values};
  delta.gate = {path + ".in_proj_z", spec.hidden, values};
  delta.beta = {path + ".in_proj_b", spec.hidden, delta.heads};
  delta.decay = {path + ".in_proj_a", spec.hidden, delta.heads};
  return delta;
}

}  // namespace

DecoderTraits qwen_hybrid_traits(ConfigReader& config) {
  DecoderTraits traits;
  traits.norm_offset = 1;
  traits.qk_norm = QkNorm::head;
  traits.rotary = 0.25;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  return traits;
}

ModelSpec read_qwen_hybrid(ConfigReader& config, const DecoderTraits& traits, bool fused) {
  ModelSpec spec = read_decoder(config, traits);
  const std::vector<bool> is_delta = delta_layers(config, spec.blocks.size());
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (!is_delta[i]) {
      AttentionSpec& a = attention_of(spec.blocks[i]);
      a.q.out *= 2;
      a.gate_in_q = true;
      a.gate_kind = GateKind::sigmoid;
      continue;
    }
    const std::string path = layer_path(traits, i) + ".linear_attn";
    spec.blocks[i].mixer = fused ? fused_delta(config, spec, path) : separate_delta(config, spec, path);
  }
  return spec;
}

namespace {

Result<ModelSpec> read_qwen3_next(ConfigReader& config) {
  ModelSpec spec = read_qwen_hybrid(config, qwen_hybrid_traits(config), true);
  set_qwen_experts(config, spec, config.flag_or("norm_topk_prob", true));
  return spec;
}

Result<ModelSpec> read_qwen3_5(ConfigReader& config) {
  return read_qwen_hybrid(config, qwen_hybrid_traits(config), false);
}

Result<ModelSpec> read_qwen3_5_moe(ConfigReader& config) {
  DecoderTraits traits = qwen_hybrid_traits(config);
  traits.intermediate = 1;  // no layer is dense
  ModelSpec spec = read_qwen_hybrid(config, traits, false);
  set_qwen_experts(config, spec, true);
  return spec;
}

// OLMo Hybrid: norms before delta layers, and after the layers of attention as in OLMo 2.
Result<ModelSpec> read_olmo_hybrid(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.qk_norm = QkNorm::width;
  traits.rope = config.has("rope_parameters") || config.has("rope_theta");
  for (const char* key :
       {"linear_a_log_max", "linear_a_log_min", "linear_dt_init_floor", "linear_dt_max", "linear_dt_min"}) {
    config.ignore(key);
  }
  ModelSpec spec = read_decoder(config, traits);
  const std::vector<bool> is_delta = delta_layers(config, spec.blocks.size());
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    const std::string layer = layer_path(traits, i), path = layer + ".linear_attn";
    if (!is_delta[i]) {
      block.mixer_post_norm = block.feed_forward_norm;
      block.feed_forward_post_norm = block.feed_forward_norm;
      block.mixer_norm = block.feed_forward_norm = {};
      block.mixer_post_norm.path = layer + ".post_attention_layernorm";
      block.feed_forward_post_norm.path = layer + ".post_feedforward_layernorm";
      spec.renames.emplace_back(block.mixer_post_norm.path + ".", layer + ".feedforward_layer_norm.");
      continue;
    }
    DeltaSpec delta = delta_sizes(config, spec, path);
    const int64_t keys = delta.key_heads * delta.key_dim, values = delta.heads * delta.value_dim;
    delta.q = {path + ".q_proj", spec.hidden, keys};
    delta.k = {path + ".k_proj", spec.hidden, keys};
    delta.v = {path + ".v_proj", spec.hidden, values};
    delta.gate = {path + ".g_proj", spec.hidden, values};
    delta.beta = {path + ".b_proj", spec.hidden, delta.heads};
    delta.decay = {path + ".a_proj", spec.hidden, delta.heads};
    if (config.flag_or("linear_allow_neg_eigval", true)) delta.beta_scale = 2;
    delta.norm.path = path + ".o_norm";
    delta.norm.eps = 1e-5;
    delta.out.path = path + ".o_proj";
    split_stored_conv(spec, delta, path);
    block.mixer = std::move(delta);
    spec.renames.emplace_back(layer + ".input_layernorm.", layer + ".attention_layer_norm.");
    spec.renames.emplace_back(layer + ".post_attention_layernorm.", layer + ".feedforward_layer_norm.");
  }
  return spec;
}

// The file has all projections of a delta layer in one matrix: q, k and v, gate, beta, decay.
void split_stored_projections(ModelSpec& spec, const DeltaSpec& delta, const std::string& path) {
  int64_t row = 0;
  for (const LinearSpec* linear : {&delta.qkv, &delta.gate, &delta.beta, &delta.decay}) {
    StoredBlock block;
    block.tensor = path + ".in_proj.weight";
    block.rows = linear->out;
    block.columns = spec.hidden;
    block.from_row = row;
    row += linear->out;
    spec.stored[linear->path + ".weight"] = {block};
  }
}

// Lara Mini: rope on sliding layers alone, experts and a shared expert without a gate.
Result<ModelSpec> read_lara_mini(ConfigReader& config) {
  DecoderTraits traits;
  traits.qk_norm = QkNorm::head;
  traits.tied = true;
  traits.intermediate = 1;  // no layer is dense
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  ModelSpec spec = read_decoder(config, traits);
  const std::vector<bool> is_delta = layers_of_kind(config, "linear_attention");
  const std::vector<bool> sliding = layers_of_kind(config, "sliding_attention");
  config.require(is_delta.size() == spec.blocks.size(), "layer_types", "must have one entry a layer");
  const int64_t window = config.positive("sliding_window");
  MoeSpec moe;
  moe.top_k.k = config.positive("num_experts_per_tok");
  moe.renormalise = config.flag_or("norm_topk_prob", true);
  const ExpertSizes sizes{config.positive("num_experts"), config.positive("moe_intermediate_size"),
                          config.positive("shared_expert_intermediate_size")};
  if (!config.status().ok()) return spec;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    set_experts(spec, i, moe, {.shared = "shared_expert", .stacked = true}, sizes);
    if (!is_delta[i]) {
      AttentionSpec& a = attention_of(spec.blocks[i]);
      a.rope = sliding[i] ? 0 : -1;
      a.attend.window = sliding[i] ? window : 0;
      continue;
    }
    const std::string path = layer_path(traits, i) + ".linear_attn";
    DeltaSpec delta = separate_delta(config, spec, path);
    split_stored_projections(spec, delta, path);
    spec.renames.emplace_back(path + ".norm.", path + ".out_norm.");
    spec.blocks[i].mixer = std::move(delta);
  }
  return spec;
}

constexpr std::array kQwen3nextGguf = {GgufLayout{"qwen3next"}};
constexpr std::array kQwen35Gguf = {GgufLayout{"qwen35"}};
constexpr std::array kQwen35moeGguf = {GgufLayout{"qwen35moe"}};

constexpr Family kFamilies[] = {
    {"lara_mini", {"lara_mini"}, {}, read_lara_mini},
    {"qwen3_next", {"qwen3_next"}, kQwen3nextGguf, read_qwen3_next},
    {"qwen3_5", {"qwen3_5_text"}, kQwen35Gguf, read_qwen3_5},
    {"qwen3_5_moe", {"qwen3_5_moe_text"}, kQwen35moeGguf, read_qwen3_5_moe},
    {"olmo_hybrid", {"olmo_hybrid"}, {}, read_olmo_hybrid},
};

}  // namespace

std::span<const Family> gated_delta_families() {
  return kFamilies;
}

}  // namespace tenon
