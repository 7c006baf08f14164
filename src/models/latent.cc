#include "models/latent.h"

#include <cmath>

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

}  // namespace

namespace {

LatentSizes read_latent_sizes(ConfigReader& config) {
  LatentSizes s;
  s.heads = config.positive("num_attention_heads");
  s.q_rank = config.positive_or("q_lora_rank", 0);
  s.kv_rank = config.positive("kv_lora_rank");
  s.nope = config.positive("qk_nope_head_dim");
  s.rope = config.positive("qk_rope_head_dim");
  s.v = config.positive("v_head_dim");
  return s;
}

// Sizes of each layer, some of which `per_layer_config` sets by the layer's index.
std::vector<LatentSizes> layer_sizes(ConfigReader& config, const LatentSizes& sizes, size_t layers) {
  std::vector<LatentSizes> out(layers, sizes);
  std::optional<ConfigReader> by_layer = config.object("per_layer_config");
  for (size_t i = 0; by_layer && i < layers; ++i) {
    std::optional<ConfigReader> own = by_layer->object(std::to_string(i));
    if (!own) continue;
    LatentSizes& s = out[i];
    s.heads = own->positive_or("num_attention_heads", s.heads);
    s.q_rank = own->positive_or("q_lora_rank", s.q_rank);
    s.kv_rank = own->positive_or("kv_lora_rank", s.kv_rank);
    s.nope = own->positive_or("qk_nope_head_dim", s.nope);
    s.v = own->positive_or("v_head_dim", s.v);
    own->ignore("num_key_value_heads");
    for (const UnreadKey& key : own->unread())
      config.fail(unsupported("the key '" + key.path + "' is not supported here", own->subject()));
    if (const Status status = own->status(); !status.ok()) config.fail(status.error());
  }
  if (by_layer) {
    for (const UnreadKey& key : by_layer->unread())
      config.fail(bad_file("there is no layer '" + key.path + "'", by_layer->subject()));
  }
  return out;
}

}  // namespace

ModelSpec read_latent_decoder(ConfigReader& config, bool interleaved) {
  const LatentSizes s = read_latent_sizes(config);
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
  const std::vector<LatentSizes> sizes = layer_sizes(config, s, spec.blocks.size());
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    LatentAttentionSpec a =
        latent_attention(spec, sizes[i], layer_path(traits, i) + ".self_attn", spec.final_norm.eps, bias);
    // Norms of latents have transformers' default here, whatever the model's is.
    a.q_a_norm.eps = a.kv_a_norm.eps = 1e-6;
    a.attend.scale *= factor;
    spec.blocks[i].mixer = std::move(a);
  }
  return spec;
}

void set_indexers(ConfigReader& config, ModelSpec& spec, const IndexerTraits& traits) {
  const std::vector<std::string>& types = traits.types;
  config.require(types.empty() || types.size() == spec.blocks.size(), "indexer_types",
                 "must have one entry a layer");
  IndexerSpec indexer;
  indexer.heads = config.positive("index_n_heads");
  indexer.dim = config.positive("index_head_dim");
  indexer.keys = config.positive("index_topk");
  indexer.rope = traits.rope;
  indexer.rope_from = traits.rope_from;
  if (!config.status().ok()) return;
  int32_t last = -1;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    auto& a = std::get<LatentAttentionSpec>(spec.blocks[i].mixer);
    if (!types.empty() && types[i] == "none") continue;
    config.require(a.q_a.present(), "q_lora_rank", "is needed by the indexer");
    if (!types.empty() && types[i] == "shared") {
      config.require(last >= 0, "indexer_types", "must begin with a layer that chooses");
      a.indices_from = last;
      continue;
    }
    const std::string path = "model.layers." + std::to_string(i) + ".self_attn.indexer";
    indexer.q = {path + ".wq_b", a.q_b.in, indexer.heads * indexer.dim};
    indexer.k = {path + ".wk", spec.hidden, indexer.dim};
    indexer.weights = {path + ".weights_proj", spec.hidden, indexer.heads};
    indexer.k_norm = {NormKind::layer, path + ".k_norm", indexer.dim, traits.eps};
    indexer.k_norm.bias = true;
    a.indexer = indexer;
    last = static_cast<int32_t>(i);
  }
}

void set_latent_experts(ConfigReader& config, ModelSpec& spec, const MoeSpec& moe, const ExpertNames& names) {
  const int64_t width = config.positive("moe_intermediate_size");
  const ExpertSizes sizes{config.positive("n_routed_experts"), width,
                          config.positive_or("shared_experts_intermediate_size", width) *
                              config.positive_or("n_shared_experts", 1)};
  const std::vector<bool> dense = dense_mlp_layers(config, spec.blocks.size());
  config.require(config.positive_or("moe_layer_freq", 1) == 1, "moe_layer_freq", "must be 1");
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (!dense[i]) set_experts(spec, i, moe, names, sizes);
  }
}

}  // namespace tenon
