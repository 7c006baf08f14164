// Kimi Linear: delta attention with a decay of each channel, and latent attention without rope. Bailing
// Hybrid (Ling 3): the same with a bounded decay, rope, and a gate on the heads of latent attention.
#include "models/delta.h"
#include "models/family.h"
#include "models/latent.h"

namespace tenon {
namespace {

struct KimiSizes {
  int64_t heads, head_dim, taps;
};

DeltaSpec kimi_delta(ModelSpec& spec, const KimiSizes& s, const std::string& path) {
  const int64_t width = s.heads * s.head_dim;
  DeltaSpec delta;
  delta.key_heads = delta.heads = s.heads;
  delta.key_dim = delta.value_dim = s.head_dim;
  delta.q = {path + ".q_proj", spec.hidden, width};
  delta.k = {path + ".k_proj", spec.hidden, width};
  delta.v = {path + ".v_proj", spec.hidden, width};
  delta.conv = {path + ".conv1d", 3 * width, s.taps};
  delta.beta = {path + ".b_proj", spec.hidden, s.heads};
  delta.decay_a = {path + ".forget_gate.f_a_proj", spec.hidden, s.head_dim};
  delta.decay = {path + ".forget_gate.f_b_proj", s.head_dim, width};
  delta.decay_kind = {path + ".forget_gate.A_log", path + ".forget_gate.dt_bias"};
  delta.by_channel = true;
  delta.gate_a = {path + ".g_a_proj", spec.hidden, s.head_dim};
  delta.gate = {path + ".g_b_proj", s.head_dim, width};
  delta.norm = {path + ".o_norm", s.head_dim, s.head_dim, spec.final_norm.eps, true};
  delta.out = {path + ".o_proj", width, spec.hidden};
  store_whole(spec, delta.decay_kind.a_log, path + ".A_log", s.heads, 1);
  split_stored_conv(spec, delta, path);
  return delta;
}

// Layers of delta attention, by `layer_types` or, counted from one, by the lists of `linear_attn_config`.
std::vector<bool> delta_layers(ConfigReader& config, size_t layers) {
  std::vector<bool> delta = layers_of_kind(config, "linear_attention");
  if (delta.size() == layers) return delta;
  delta.assign(layers, false);
  auto linear = config.object("linear_attn_config");
  config.require(linear.has_value(), "layer_types", "is missing");
  if (!linear) return delta;
  for (double index : linear->numbers_or_empty("kda_layers")) {
    if (index >= 1 && index <= static_cast<double>(layers)) delta[static_cast<size_t>(index) - 1] = true;
  }
  return delta;
}

KimiSizes read_sizes(ConfigReader& config) {
  if (auto linear = config.object("linear_attn_config")) {
    const KimiSizes sizes{linear->positive("num_heads"), linear->positive("head_dim"),
                          linear->positive("short_conv_kernel_size")};
    if (const Status status = linear->status(); !status.ok()) config.fail(status.error());
    return sizes;
  }
  return {config.positive("linear_num_heads"), config.positive("linear_head_dim"),
          config.positive("linear_conv_kernel_dim")};
}

void alias_kimi_keys(ConfigReader& config) {
  for (const auto& [key, name] : {std::pair{"max_position_embeddings", "model_max_length"},
                                  {"norm_topk_prob", "moe_renormalize"},
                                  {"n_group", "num_expert_group"},
                                  {"n_routed_experts", "num_experts"},
                                  {"num_experts_per_tok", "num_experts_per_token"},
                                  {"n_shared_experts", "num_shared_experts"}}) {
    config.alias(key, name);
  }
}

Result<ModelSpec> read_kimi_linear(ConfigReader& config) {
  alias_kimi_keys(config);
  for (const char* key : {"rope_theta", "rope_scaling", "mla_use_nope", "moe_router_activation_func",
                          "use_grouped_topk", "linear_attn_config"}) {
    config.ignore(key);
  }
  ModelSpec spec = read_latent_decoder(config, false);
  spec.ropes.clear();
  set_latent_experts(config, spec, read_deepseek_router(config),
                     {.file = "block_sparse_moe",
                      .gate = "w1",
                      .up = "w3",
                      .down = "w2",
                      .selection_bias = "gate.e_score_correction_bias"});
  const std::vector<bool> delta = delta_layers(config, spec.blocks.size());
  const KimiSizes sizes = read_sizes(config);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (delta[i]) {
      spec.blocks[i].mixer = kimi_delta(spec, sizes, "model.layers." + std::to_string(i) + ".self_attn");
    } else {
      std::get<LatentAttentionSpec>(spec.blocks[i].mixer).rope = -1;
    }
  }
  spec.renames.emplace_back("forget_gate.", "");
  spec.renames.emplace_back(".mlp.", ".block_sparse_moe.");
  return spec;
}

Result<ModelSpec> read_bailing_hybrid(ConfigReader& config) {
  alias_kimi_keys(config);
  for (const char* key :
       {"rope_theta", "layer_group_size", "mtp_loss_scaling_factor", "short_conv_kernel_size"})
    config.ignore(key);
  config.require(!config.has("num_nextn_predict_layers") || config.integer("num_nextn_predict_layers") == 0,
                 "num_nextn_predict_layers", "is not supported");
  ModelSpec spec = read_latent_decoder(config, true);
  MoeSpec moe = read_deepseek_router(config);
  set_latent_experts(
      config, spec, moe,
      {.selection_bias = "gate.e_score_correction_bias", .stored_bias = "mlp.gate.expert_bias"});
  const std::vector<bool> delta = delta_layers(config, spec.blocks.size());
  const KimiSizes sizes = read_sizes(config);
  const double bound = config.flag_or("kda_safe_gate", true) ? config.number_or("kda_lower_bound", -5) : 0;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    const std::string layer = "model.layers." + std::to_string(i), path = layer + ".self_attn";
    if (!delta[i]) {
      auto& a = std::get<LatentAttentionSpec>(spec.blocks[i].mixer);
      a.gate = {path + ".g_proj", spec.hidden, a.heads};
      a.gate_kind = GateKind::sigmoid;
      continue;
    }
    DeltaSpec d = kimi_delta(spec, sizes, path);
    const int64_t width = sizes.heads * sizes.head_dim;
    d.decay_a = d.gate_a = {};
    d.decay = {path + ".forget_gate.f_proj", spec.hidden, width};
    d.gate = {path + ".g_proj", spec.hidden, width};
    d.decay_kind.bound = bound;
    store_whole(spec, d.decay_kind.a_log, layer + ".attention.A_log", sizes.heads, 1);
    spec.stored.erase(d.conv.path + ".weight");
    split_stored_conv(spec, d, layer + ".attention");
    spec.blocks[i].mixer = std::move(d);
  }
  for (const auto& [from, to] : {std::pair{"model.embed_tokens", "model.word_embeddings"},
                                 {"self_attn.forget_gate.", "attention."},
                                 {"self_attn.o_proj", "attention.dense"},
                                 {".self_attn.", ".attention."}}) {
    spec.renames.emplace_back(from, to);
  }
  return spec;
}

constexpr Family kFamilies[] = {
    {"bailing_hybrid", {"bailing_hybrid"}, {}, read_bailing_hybrid},
    {"kimi_linear", {"kimi_linear"}, {}, read_kimi_linear},
};

}  // namespace

std::span<const Family> kimi_families() {
  return kFamilies;
}

}  // namespace tenon
