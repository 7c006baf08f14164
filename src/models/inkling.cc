// Inkling: attention with learned relative positions, short convolutions after projections and layers, and
// shared experts that the router weighs with the others.
#include "models/experts.h"
#include "models/family.h"
#include "models/relative.h"

namespace tenon {

RelativeAttentionSpec read_relative_attention(ConfigReader& config, bool sliding) {
  const std::string kind = sliding ? "swa_" : "";
  RelativeAttentionSpec a;
  a.heads = config.positive(kind + "num_attention_heads");
  a.kv_heads = config.positive(kind + "num_key_value_heads");
  a.head_dim = config.positive(kind + "head_dim");
  config.require(a.heads % a.kv_heads == 0, kind + "num_key_value_heads", "must divide the number of heads");
  a.states = config.positive("d_rel");
  const int64_t window = config.positive("sliding_window_size"), extent = config.positive("rel_extent");
  a.extent = sliding ? window : extent;
  a.attend.window = sliding ? window : 0;
  const double rate = config.number_or("log_scaling_alpha", 0.1);
  const int64_t from = config.has("log_scaling_n_floor") ? config.positive("log_scaling_n_floor") : 0;
  a.log_rate = sliding ? 0 : rate;
  a.log_from = sliding ? 0 : from;
  return a;
}

std::vector<bool> read_sliding_layers(ConfigReader& config, int64_t full_every) {
  const std::vector<std::string> types = config.texts_or_empty("layer_types");
  const int64_t layers = config.positive("num_hidden_layers");
  config.require(layers <= 10000, "num_hidden_layers", "is implausibly large");
  config.require(types.empty() || static_cast<int64_t>(types.size()) == layers, "layer_types",
                 "must have one entry a layer");
  std::vector<bool> sliding;
  if (!config.status().ok()) return sliding;
  for (int64_t i = 0; i < layers; ++i) {
    const std::string type =
        types.empty() ? ((i + 1) % full_every ? "hybrid_sliding" : "hybrid") : types[static_cast<size_t>(i)];
    config.require(type == "hybrid" || type == "hybrid_sliding", "layer_types",
                   "has a kind that is not known: " + type);
    sliding.push_back(type == "hybrid_sliding");
  }
  return sliding;
}

int64_t read_taps(ConfigReader& config) {
  const int64_t taps = config.positive_or("conv_kernel_size", 4);
  config.require(taps > 1 && taps <= 1024, "conv_kernel_size", "must be between 2 and 1024");
  return taps;
}

ResidualConvSpec residual_conv(std::string path, int64_t channels, int64_t taps, double scale) {
  ResidualConvSpec out;
  out.conv = {std::move(path), channels, taps};
  out.scale = scale;
  return out;
}

void set_unpadded_vocabulary(ConfigReader& config, ModelSpec& spec, const std::string& embedding_tensor,
                             const std::string& head_tensor) {
  const int64_t rows = config.positive_or("unpadded_vocab_size", spec.vocab);
  config.require(rows <= spec.vocab, "unpadded_vocab_size", "is more than vocab_size");
  if (rows >= spec.vocab) return;
  spec.vocab = spec.head.out = rows;
  store_whole(spec, spec.embedding_path + ".weight", embedding_tensor, rows, spec.hidden);
  store_whole(spec, spec.head.path + ".weight", head_tensor, rows, spec.hidden);
}

namespace {

RelativeAttentionSpec attention(ConfigReader& config, const ModelSpec& spec, bool sliding, int64_t taps,
                                const std::string& path) {
  RelativeAttentionSpec a = read_relative_attention(config, sliding);
  const int64_t width = a.heads * a.head_dim, kv_width = a.kv_heads * a.head_dim;
  a.q = {path + ".q_proj", spec.hidden, width};
  a.k = {path + ".k_proj", spec.hidden, kv_width};
  a.v = {path + ".v_proj", spec.hidden, kv_width};
  a.r = {path + ".r_proj", spec.hidden, a.heads * a.states};
  a.o = {path + ".o_proj", width, spec.hidden};
  a.k_conv = residual_conv(path + ".k_sconv.conv1d", kv_width, taps, 1);
  a.v_conv = residual_conv(path + ".v_sconv.conv1d", kv_width, taps, 1);
  a.q_norm = rms_norm_spec(path + ".q_norm", a.head_dim, spec.final_norm.eps);
  a.k_norm = rms_norm_spec(path + ".k_norm", a.head_dim, spec.final_norm.eps);
  a.profiles = path + ".rel_logits_proj.proj";
  a.attend.scale = 1 / static_cast<double>(a.head_dim);  // of normed heads
  return a;
}

// Shared experts are stacked in the file; here they lie side by side.
MlpSpec shared_experts(ModelSpec& spec, const std::string& path, int64_t experts, int64_t width) {
  const int64_t all = experts * width;
  MlpSpec mlp;
  mlp.gate = {path, spec.hidden, all, false, ".gate_proj"};
  mlp.up = {path, spec.hidden, all, false, ".up_proj"};
  mlp.down = {path, all, spec.hidden, false, ".down_proj"};
  for (const char* name : {".gate_proj", ".up_proj"})
    store_whole(spec, path + name, path + name, all, spec.hidden);
  std::vector<StoredBlock>& down = spec.stored[path + ".down_proj"];
  for (int64_t e = 0; e < experts; ++e) {
    StoredBlock block;
    block.tensor = path + ".down_proj";
    block.column = e * width;
    block.rows = spec.hidden;
    block.columns = width;
    block.from_row = e * spec.hidden;
    down.push_back(block);
  }
  return mlp;
}

void ignore_next_tokens(ConfigReader& config) {
  for (const char* key : {"num_mtp_layers", "chain_hidden_post_norm", "mtp_hidden_states_first",
                          "mtp_local_layer_ids", "number_of_conv_states", "rms_norm_eps_moe_gate"})
    config.ignore(key);
}

void read_local_layers(ConfigReader& config, std::vector<bool>& sliding) {
  if (config.has("layer_types")) return config.ignore("local_layer_ids");
  const std::vector<double> local = config.numbers_or_empty("local_layer_ids");
  if (local.empty()) return;
  sliding.assign(sliding.size(), false);
  for (double layer : local) {
    const bool inside = layer >= 0 && layer < static_cast<double>(sliding.size());
    config.require(inside, "local_layer_ids", "names a layer that is not there");
    if (inside) sliding[static_cast<size_t>(layer)] = true;
  }
}

// Published files call some keys otherwise, and with `dense_intermediate_size`, `intermediate_size` is the
// experts'.
void read_published_keys(ConfigReader& config) {
  for (const auto& [key, name] : {std::pair{"conv_kernel_size", "sconv_kernel_size"},
                                  {"max_position_embeddings", "model_max_length"},
                                  {"first_k_dense_replace", "dense_mlp_idx"}}) {
    if (config.has(name)) config.alias(key, name);
  }
  if (!config.has("dense_intermediate_size")) return;
  config.alias("moe_intermediate_size", "intermediate_size");
  config.alias("intermediate_size", "dense_intermediate_size");
}

Result<ModelSpec> read_inkling(ConfigReader& config) {
  DecoderTraits traits;
  traits.rope = false;
  read_published_keys(config);
  ignore_next_tokens(config);
  config.require(config.flag_or("shared_expert_sink", true), "shared_expert_sink", "must be true");
  ModelSpec spec = read_decoder(config, traits);
  std::vector<bool> sliding = read_sliding_layers(config, 6);
  read_local_layers(config, sliding);
  const int64_t taps = read_taps(config);
  const std::vector<bool> dense = dense_mlp_layers(config, sliding.size());
  MoeSpec moe;
  moe.scores = RouterScores::sigmoid;
  moe.top_k.k = config.positive("num_experts_per_tok");
  moe.renormalise = true;
  moe.scale = config.number_or("route_scale", 8);
  moe.shared_choices = config.positive("n_shared_experts");
  config.require(moe.shared_choices <= 1024, "n_shared_experts", "is implausibly large");
  const ExpertSizes sizes{config.positive("n_routed_experts"), config.positive("moe_intermediate_size")};
  const ExpertNames names{.selection_bias = "gate.e_score_correction_bias", .stacked = true};
  spec.logit_scale = 1 / config.number_or("logits_mup_width_multiplier", 24);
  if (!config.status().ok()) return spec;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    const std::string layer = layer_path(traits, i), mlp = layer + ".mlp";
    block.mixer = attention(config, spec, sliding[i], taps, layer + ".self_attn");
    block.mixer_conv = residual_conv(layer + ".attn_sconv.conv1d", spec.hidden, taps, 1);
    block.feed_forward_conv = residual_conv(layer + ".mlp_sconv.conv1d", spec.hidden, taps, 1);
    if (dense[i]) {
      mlp_of(block).output_scale = mlp + ".global_scale";
      continue;
    }
    set_experts(spec, i, moe, names, sizes);
    auto& experts = std::get<MoeSpec>(block.feed_forward);
    experts.router.out = sizes.experts + moe.shared_choices;
    store_whole(spec, experts.router.path + ".weight", experts.router.path + ".weight", experts.router.out,
                spec.hidden);
    experts.weight_scale = mlp + ".gate.global_scale";
    experts.shared = shared_experts(spec, mlp + ".shared_experts", moe.shared_choices, sizes.intermediate);
  }
  spec.embedding_norm = rms_norm_spec("model.embed_tokens.embed_norm", spec.hidden, spec.final_norm.eps);
  set_unpadded_vocabulary(config, spec, "model.embed_tokens.weight", "lm_head.weight");
  return spec;
}

constexpr Family kFamilies[] = {
    {"inkling", {"inkling_text"}, {}, read_inkling},
};

}  // namespace

std::span<const Family> inkling_families() {
  return kFamilies;
}

}  // namespace tenon
