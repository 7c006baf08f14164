// Hunyuan 4: latent attention to chosen keys with sinks and a gate, several residual streams.
#include "models/family.h"
#include "models/hyper.h"
#include "models/latent.h"

namespace tenon {
namespace {

// Layers that choose keys: the first, and every fourth from the second on.
std::vector<std::string> indexer_types(ConfigReader& config, size_t layers) {
  std::vector<std::string> types = config.texts_or_empty("indexer_types");
  if (!types.empty()) return types;
  for (size_t i = 0; i < layers; ++i) types.emplace_back(i == 0 || (i - 1) % 4 == 0 ? "full" : "shared");
  return types;
}

Result<ModelSpec> read_hy_v4(ConfigReader& config) {
  config.ignore("learnable_sink_init");
  config.suppose("n_group", 1);
  ModelSpec spec = read_latent_decoder(config, false);
  if (!config.has("mlp_layer_types")) config.suppose("first_k_dense_replace", 1);
  set_latent_experts(config, spec, read_deepseek_router(config),
                     {.selection_bias = "gate.e_score_correction_bias", .stacked = true});
  const std::vector<bool> indexed = layers_of_kind(config, "indexed_attention");
  for (bool each : indexed) config.require(each, "layer_types", "must be indexed_attention");
  const double limit = config.number_or("swiglu_limit", 10), eps = config.number_or("hc_eps", 1e-6);
  spec.streams = config.positive_or("hc_mult", 4);
  const HyperConnectionSizes sizes{.norm_eps = spec.final_norm.eps,
                                   .before_eps = eps,
                                   .after_eps = eps,
                                   .after_scale = config.number_or("hc_magnitude", 2)};
  IndexerTraits traits{.rope_from = config.positive("index_head_dim") - config.positive("qk_rope_head_dim"),
                       .eps = spec.final_norm.eps};
  traits.types = indexer_types(config, spec.blocks.size());
  config.require(traits.rope_from >= 0, "index_head_dim", "is less than qk_rope_head_dim");
  config.require(spec.streams > 1 && spec.streams <= 64, "hc_mult", "must be between 2 and 64");
  set_indexers(config, spec, traits);
  if (!config.status().ok()) return spec;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    const std::string layer = "model.layers." + std::to_string(i), path = layer + ".self_attn";
    auto& a = std::get<LatentAttentionSpec>(block.mixer);
    a.attend.sinks = path + ".learnable_sink_param";
    a.gate_kind = GateKind::sigmoid;
    a.gate = {path + ".gate_proj", spec.hidden, a.heads * a.v_head_dim};
    block.mixer_streams = hyper_connection(spec, layer + ".hc_pre.hc_attn_layer.hc_", sizes);
    block.feed_forward_streams = hyper_connection(spec, layer + ".hc_pre.hc_mlp_layer.hc_", sizes);
    if (auto* moe = std::get_if<MoeSpec>(&block.feed_forward)) moe->inner.limit = limit;
  }
  spec.head_streams = hyper_head(spec, "model.hc_pre.hc_head.hc_head_", sizes);
  spec.renames.emplace_back("gate_proj", "linear_gate");
  return spec;
}

constexpr Family kFamilies[] = {
    {"hy_v4", {"hy_v4"}, {}, read_hy_v4},
};

}  // namespace

std::span<const Family> hy_v4_families() {
  return kFamilies;
}

}  // namespace tenon
