// dots3.note: latent attention of two sizes, to chosen keys and to a window, with scaled latents, a norm of
// the rotary key and a gate on each head.
#include <cmath>

#include "models/family.h"
#include "models/latent.h"
#include "models/rope.h"

namespace tenon {
namespace {

Result<ModelSpec> read_dots3_note(ConfigReader& config) {
  ModelSpec spec = read_latent_decoder(config, true);
  set_latent_experts(config, spec, read_deepseek_router(config),
                     {.selection_bias = "gate.e_score_correction_bias"});
  const std::vector<bool> indexed = layers_of_kind(config, "indexed_attention");
  const std::vector<bool> sliding = layers_of_kind(config, "sliding_attention");
  config.require(indexed.size() == spec.blocks.size(), "layer_types", "must have one entry a layer");
  const std::vector<int64_t> windows = read_windows(config);
  if (!config.status().ok() || spec.blocks.empty()) return spec;
  const int64_t dim = config.positive("qk_rope_head_dim");
  const auto rope_of = [&](std::string_view layer_type) {
    RopeSpec rope = read_rope(
        config,
        {.head_dim = dim, .max_positions = spec.max_positions, .whole = true, .layer_type = layer_type});
    rope.interleaved = true;
    return rope;
  };
  spec.ropes = {rope_of("indexed_attention"), rope_of("sliding_attention")};
  IndexerTraits traits;
  for (bool each : indexed) traits.types.emplace_back(each ? "full" : "none");
  set_indexers(config, spec, traits);
  set_windows(spec, windows);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    auto& a = std::get<LatentAttentionSpec>(spec.blocks[i].mixer);
    const std::string path = "model.layers." + std::to_string(i) + ".self_attn";
    config.require(a.q_a.present(), "q_lora_rank", "is missing");
    config.require(indexed[i] || sliding[i], "layer_types", "has a kind that is not known");
    const double hidden = static_cast<double>(spec.hidden);
    a.rope = indexed[i] ? 0 : 1;
    a.q_a_norm.eps = a.kv_a_norm.eps = spec.final_norm.eps;
    a.k_rope_norm = rms_norm_spec(path + ".k_rope_only_layernorm", a.rope_dim, spec.final_norm.eps);
    a.q_latent_scale = std::sqrt(hidden / static_cast<double>(a.q_b.in));
    a.kv_latent_scale = std::sqrt(hidden / static_cast<double>(a.kv_b.in));
    a.gate_kind = GateKind::sigmoid;
    a.gate = {path + ".g_proj", spec.hidden, a.heads};
  }
  return spec;
}

constexpr Family kFamilies[] = {
    {"dots3_note", {"dots3_note_text"}, {}, read_dots3_note},
};

}  // namespace

std::span<const Family> dots3_note_families() {
  return kFamilies;
}

}  // namespace tenon
