// Granite 3 and 4 (dense) and HyperCLOVA X: Llama with multipliers on embeddings, residuals, scores and
// logits.
#include <algorithm>
#include <map>

#include "models/decoder.h"
#include "models/family.h"
#include "models/mamba2.h"
#include "models/rope.h"

namespace tenon {
namespace {

DecoderTraits granite_traits(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.set_mlp_bias(config.flag_or("mlp_bias", false));
  return traits;
}

void set_multipliers(ConfigReader& config, ModelSpec& spec, bool divides) {
  spec.embedding_scale = config.number_or("embedding_multiplier", 1);
  const double logits = config.number_or("logits_scaling", 1);
  config.require(logits > 0, "logits_scaling", "must be positive");
  spec.logit_scale = divides ? 1 / logits : logits;
  const double residual = config.number_or("residual_multiplier", 1);
  const double attention = config.number_or("attention_multiplier", 1);
  for (BlockSpec& block : spec.blocks) {
    block.residual_scale = residual;
    if (auto* a = std::get_if<AttentionSpec>(&block.mixer)) a->attend.scale = attention;
  }
}

Result<ModelSpec> read_granite(ConfigReader& config) {
  ModelSpec spec = read_decoder(config, granite_traits(config));
  set_multipliers(config, spec, true);
  return spec;
}

// Rope by layer, from a list of thetas where 0 is none; and sinks on every layer.
void set_layer_ropes(ConfigReader& config, ModelSpec& spec) {
  const std::vector<double> thetas = config.numbers_or_empty("layer_rope_theta");
  config.require(thetas.size() == spec.blocks.size(), "layer_rope_theta", "must have one entry a layer");
  if (!config.status().ok()) return;
  std::map<double, int32_t> ropes;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    a.attend.sinks = "model.layers." + std::to_string(i) + ".self_attn.sinks";
    a.rope = -1;
    if (thetas[i] == 0) continue;
    const auto [at, added] = ropes.emplace(thetas[i], static_cast<int32_t>(spec.ropes.size()));
    a.rope = at->second;
    if (added) spec.ropes.push_back(plain_rope(thetas[i], a.head_dim));
  }
}

MlpSpec shared_mlp(const ModelSpec& spec, const std::string& layer, int64_t width) {
  MlpSpec mlp;
  mlp.gate_up = {layer + ".shared_mlp.input_linear", spec.hidden, 2 * width};
  mlp.down = {layer + ".shared_mlp.output_linear", width, spec.hidden};
  return mlp;
}

// Granite's experts: chosen logits are softmaxed; weights come stacked, as transformers keeps them.
MoeSpec granite_experts(ConfigReader& config, const ModelSpec& spec, const std::string& layer) {
  const std::string path = layer + ".block_sparse_moe";
  MoeSpec moe;
  moe.scores = RouterScores::softmax_of_chosen;
  moe.top_k.k = config.positive("num_experts_per_tok");
  moe.experts = config.positive("num_local_experts");
  moe.intermediate = config.positive("intermediate_size");
  moe.router = {path + ".router.layer", spec.hidden, moe.experts};
  moe.up_name = path + ".input_linear.weight";
  moe.down_name = path + ".output_linear.weight";
  return moe;
}

Result<ModelSpec> read_granite_moe(ConfigReader& config) {
  const DecoderTraits traits = granite_traits(config);
  ModelSpec spec = read_decoder(config, traits);
  set_multipliers(config, spec, true);
  const int64_t shared =
      config.has("shared_intermediate_size") ? config.integer("shared_intermediate_size") : 0;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    MoeSpec moe = granite_experts(config, spec, layer_path(traits, i));
    if (shared > 0) moe.shared = shared_mlp(spec, layer_path(traits, i), shared);
    spec.blocks[i].feed_forward = std::move(moe);
  }
  return spec;
}

Result<ModelSpec> read_granite_moe_swa(ConfigReader& config) {
  ASSIGN_OR_RETURN(ModelSpec spec, read_granite_moe(config));
  spec.renames = {{"router.layer.weight", "router.weight"},
                  {"block_sparse_moe.input_linear.weight", "block_sparse_moe.experts.gate_up_proj"},
                  {"block_sparse_moe.output_linear.weight", "block_sparse_moe.experts.down_proj"}};
  set_windows(spec, read_windows(config));
  set_layer_ropes(config, spec);
  return spec;
}

// Granite 4: attention or Mamba-2, experts or a dense MLP.
Result<ModelSpec> read_granite_hybrid(ConfigReader& config) {
  const DecoderTraits traits = granite_traits(config);
  ModelSpec spec = read_decoder(config, traits);
  set_multipliers(config, spec, true);
  check_mamba2_keys(config);
  const std::string positions = config.text_or("position_embedding_type", "");
  const std::vector<std::string> types = config.texts_or_empty("layer_types");
  config.require(types.size() == spec.blocks.size(), "layer_types", "must have one entry a layer");
  if (!config.status().ok()) return spec;
  const int64_t experts = config.has("num_local_experts") ? config.integer("num_local_experts") : 0;
  if (experts == 0) {
    config.ignore("num_experts_per_tok");
    config.ignore("intermediate_size");
  }
  if (std::none_of(types.begin(), types.end(),
                   [](const std::string& type) { return type == "mamba" || type == "linear_attention"; })) {
    for (const char* key : {"mamba_conv_bias", "mamba_d_conv", "mamba_d_head", "mamba_d_state",
                            "mamba_n_groups", "mamba_n_heads", "mamba_proj_bias"}) {
      config.ignore(key);
    }
  }
  const int64_t shared = config.positive("shared_intermediate_size");
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (types[i] == "full_attention" || types[i] == "attention") {
      if (positions != "rope") attention_of(spec.blocks[i]).rope = -1;
    } else {
      config.require(types[i] == "linear_attention" || types[i] == "mamba", "layer_types",
                     "has a kind that is not known: " + types[i]);
      spec.blocks[i].mixer =
          read_mamba2_layer(config, {}, layer_path(traits, i) + ".mamba", spec.hidden, spec.final_norm.eps);
    }
    const MlpSpec mlp = shared_mlp(spec, layer_path(traits, i), shared);
    if (experts == 0) {
      spec.blocks[i].feed_forward = mlp;
      continue;
    }
    MoeSpec moe = granite_experts(config, spec, layer_path(traits, i));
    moe.shared = mlp;
    spec.blocks[i].feed_forward = std::move(moe);
  }
  return spec;
}

Result<ModelSpec> read_granite_swa(ConfigReader& config) {
  ASSIGN_OR_RETURN(ModelSpec spec, read_granite(config));
  set_windows(spec, read_windows(config));
  set_layer_ropes(config, spec);
  return spec;
}

Result<ModelSpec> read_hyperclovax(ConfigReader& config) {
  DecoderTraits traits = granite_traits(config);
  if (config.flag_or("use_post_norm", true)) {
    traits.names.mixer_post_norm = "post_norm1";
    traits.names.feed_forward_post_norm = "post_norm2";
  }
  ModelSpec spec = read_decoder(config, traits);
  set_multipliers(config, spec, false);
  return spec;
}

constexpr std::array kGraniteGguf = {GgufLayout{"granite", /*permuted_rope=*/true}};

constexpr std::array kGranitemoeGguf = {GgufLayout{"granitemoe", /*permuted_rope=*/true}};
constexpr std::array kGranitemoehybridGguf = {GgufLayout{"granitehybrid", /*permuted_rope=*/true}};
constexpr Family kFamilies[] = {
    {"granite", {"granite"}, kGraniteGguf, read_granite},
    {"granitemoe", {"granitemoe", "granitemoeshared"}, kGranitemoeGguf, read_granite_moe},
    {"granitemoe_swa", {"granitemoe_swa"}, {}, read_granite_moe_swa},
    {"granitemoehybrid", {"granitemoehybrid"}, kGranitemoehybridGguf, read_granite_hybrid},
    {"granite_swa", {"granite_swa"}, {}, read_granite_swa},
    {"hyperclovax", {"hyperclovax"}, {}, read_hyperclovax},
};

}  // namespace

std::span<const Family> granite_families() {
  return kFamilies;
}

}  // namespace tenon
