// xLSTM: blocks of mLSTM and a gated MLP.
#include "models/decoder.h"
#include "models/family.h"

namespace tenon {
namespace {

// How states are cut into chunks and by which kernels: the same numbers whatever they say.
void ignore_kernel_keys(ConfigReader& config) {
  for (const char* key : {"mode", "chunkwise_kernel", "sequence_kernel", "step_kernel", "chunk_size",
                          "return_last_states", "autocast_kernel_dtype", "inference_state_dtype",
                          "max_inference_chunksize", "norm_reduction_force_float32"}) {
    config.ignore(key);
  }
}

int64_t part_of(ConfigReader& config, const char* key, double otherwise, int64_t hidden, int64_t heads) {
  const double width = config.number_or(key, otherwise) * static_cast<double>(hidden);
  const bool plausible = width >= 1 && width < 1e9;
  config.require(plausible && static_cast<int64_t>(width) % heads == 0, key,
                 "times hidden_size must be a multiple of num_heads");
  return plausible ? static_cast<int64_t>(width) / heads : 1;
}

// hidden * ffn_proj_factor, cut to a whole number after it is rounded up to a multiple, as the reference
// does.
int64_t feed_forward_width(ConfigReader& config, int64_t hidden) {
  const double width = config.number_or("ffn_proj_factor", 2.667) * static_cast<double>(hidden);
  const int64_t multiple = config.positive_or("ffn_round_up_to_multiple_of", 64);
  const bool plausible = width >= 1 && width < 1e9 && multiple < 1'000'000;
  config.require(plausible, "ffn_proj_factor", "gives an implausible width");
  if (!plausible) return 1;
  const double units = (width + static_cast<double>(multiple) - 1) / static_cast<double>(multiple);
  return static_cast<int64_t>(units) * multiple;
}

void refuse_other_forms(ConfigReader& config, int64_t hidden) {
  config.require(config.text_or("weight_mode", "single") == "single", "weight_mode", "must be 'single'");
  config.require(!config.flag_or("use_bias", false), "use_bias", "must be false");
  config.require(config.flag_or("add_out_norm", true), "add_out_norm", "must be true");
  config.require(config.positive_or("embedding_dim", hidden) == hidden, "embedding_dim",
                 "must be hidden_size");
  if (config.has("num_hidden_layers")) {
    const int64_t layers = config.positive("num_hidden_layers");
    config.require(config.positive_or("num_blocks", layers) == layers, "num_blocks",
                   "must be num_hidden_layers");
  } else {
    config.alias("num_hidden_layers", "num_blocks");
  }
}

Result<ModelSpec> read_xlstm(ConfigReader& config) {
  if (!config.has("hidden_size")) config.alias("hidden_size", "embedding_dim");
  config.alias("num_attention_heads", "num_heads");
  const int64_t hidden = config.positive("hidden_size"), heads = config.positive("num_attention_heads");
  RETURN_IF_ERROR(config.status());
  ignore_kernel_keys(config);
  refuse_other_forms(config, hidden);
  DecoderTraits traits;
  traits.names.embedding = "backbone.embeddings";
  traits.names.layers = "backbone.blocks";
  traits.names.final_norm = "backbone.out_norm";
  traits.names.mixer_norm = "norm_mlstm";
  traits.names.feed_forward_norm = "norm_ffn";
  traits.names.mlp = "ffn";
  traits.names.gate = "proj_up_gate";
  traits.names.up = "proj_up";
  traits.names.down = "proj_down";
  traits.eps_key = "norm_eps";
  traits.eps = 1e-6;
  traits.rope = false;
  traits.intermediate = feed_forward_width(config, hidden);
  ModelSpec spec = read_decoder(config, traits);
  config.require(!spec.tied, "tie_word_embeddings", "must be false");
  MatrixMemorySpec m;
  m.heads = heads;
  m.key_dim = part_of(config, "qk_dim_factor", 0.5, hidden, heads);
  m.value_dim = part_of(config, "v_dim_factor", 1, hidden, heads);
  m.gate_cap = config.number_or("gate_soft_cap", 15);
  m.eps = config.number_or("eps", 1e-6);
  spec.logit_softcap = config.number_or("output_logit_soft_cap", 30);
  config.require(m.gate_cap > 0, "gate_soft_cap", "must be positive");
  config.require(m.eps > 0, "eps", "must be positive");
  config.require(spec.logit_softcap > 0, "output_logit_soft_cap", "must be positive");
  const int64_t keys = heads * m.key_dim, values = heads * m.value_dim;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    const std::string path = layer_path(traits, i) + ".mlstm_layer";
    m.q = {path + ".q", hidden, keys};
    m.k = {path + ".k", hidden, keys};
    m.v = {path + ".v", hidden, values};
    m.in_gate = {path + ".igate_preact", hidden, heads, true};
    m.forget_gate = {path + ".fgate_preact", hidden, heads, true};
    m.out_gate = {path + ".ogate_preact", hidden, values};
    m.out = {path + ".out_proj", values, hidden};
    m.norm = {NormKind::layer, path + ".multihead_norm", values, spec.final_norm.eps};
    m.norm.groups = heads;
    spec.blocks[i].mixer = m;
  }
  return spec;
}

constexpr Family kFamilies[] = {
    {"xlstm", {"xlstm"}, {}, read_xlstm},
};

}  // namespace

std::span<const Family> xlstm_families() {
  return kFamilies;
}

}  // namespace tenon
