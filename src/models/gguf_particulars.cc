#include "models/gguf_particulars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace tenon {
namespace {

constexpr int64_t kMostLayers = 10000;

int64_t layers_of(const Json& config) {
  return std::clamp<int64_t>(config["num_hidden_layers"].get<int64_t>(), 0, kMostLayers);
}

// A value for each layer, from a list or one for all.
std::vector<int64_t> by_layer(const GgufValue* value, int64_t layers) {
  std::vector<int64_t> out(static_cast<size_t>(layers), 0);
  if (!value) return out;
  if (const auto same = value->integer()) std::fill(out.begin(), out.end(), *same);
  if (const auto each = value->integers())
    std::copy_n(each->begin(), std::min(each->size(), out.size()), out.begin());
  return out;
}

// Every `period`-th layer from `offset` on, by Jamba's keys. Errors: unsupported (other distances).
Status set_period(const GgufMetadata& metadata, const std::string& name, const std::vector<bool>& chosen,
                  Json& config) {
  const auto layers = static_cast<int64_t>(chosen.size());
  const auto first = std::find(chosen.begin(), chosen.end(), true);
  const auto second = first == chosen.end() ? first : std::find(first + 1, chosen.end(), true);
  const int64_t offset = first - chosen.begin();
  const int64_t period = second == chosen.end() ? layers : second - first;
  for (int64_t i = 0; i < layers; ++i) {
    if (chosen[static_cast<size_t>(i)] == (i % period == offset)) continue;
    return unsupported(fmt::format("the layers of '{}' do not follow each other at equal distances", name),
                       metadata.checkpoint.path());
  }
  config[name + "_offset"] = offset;
  config[name + "_period"] = period;
  return {};
}

GgufGating gating_of(const GgufMetadata& metadata, const Json& config) {
  const GgufValue* key = metadata.find("expert_gating_func");
  if (key && key->integer().value_or(0) != 0) return static_cast<GgufGating>(*key->integer());
  // Files from before the key: DeepSeek-V3's routers have a bias, DeepSeek-V2's have none.
  const std::string bias =
      fmt::format("blk.{}.exp_probs_b.bias", config.value("first_k_dense_replace", int64_t{0}));
  return metadata.checkpoint.find(bias) ? GgufGating::sigmoid : GgufGating::softmax;
}

Status set_deepseek(const GgufMetadata& metadata, Json& config) {
  if (!metadata.has_experts()) {
    config["model_type"] = "youtu";  // the dense model of this architecture
    return {};
  }
  if (!config.contains("norm_topk_prob")) config["norm_topk_prob"] = false;
  const GgufGating gating = gating_of(metadata, config);
  if (gating == GgufGating::sigmoid) {
    config["model_type"] = "deepseek_v3";
    return {};
  }
  config["topk_method"] = "group_limited_greedy";
  if (gating == GgufGating::softmax) return {};
  return unsupported("the value of 'expert_gating_func' is not supported here", metadata.checkpoint.path());
}

// Every fourth layer has no rope and attends to everything, the others within chunks of 8192 tokens; queries
// and keys are normed but in the model of 128 experts.
Status set_llama4(const GgufMetadata& metadata, Json& config) {
  const GgufValue* window = metadata.find("attention.sliding_window");
  if (window && window->integer() == 0)
    return unsupported("'attention.sliding_window' must not be 0 here", metadata.checkpoint.path());
  config.erase("sliding_window");
  config["attention_chunk_size"] = 8192;
  for (int64_t i = 0; i < layers_of(config); ++i)
    config["no_rope_layers"].push_back((i + 1) % 4 == 0 ? 0 : 1);
  config["use_qk_norm"] = config.value("num_local_experts", int64_t{0}) != 128;
  return {};
}

Status set_granite(const GgufMetadata& metadata, Json& config) {
  const GgufValue* rotated = metadata.find("rope.scaling.finetuned");
  const bool rope = !rotated || rotated->boolean().value_or(true);
  if (metadata.kind.name != "granitehybrid") {
    if (rope) return {};
    return unsupported("'rope.scaling.finetuned' must not be false here", metadata.checkpoint.path());
  }
  config["position_embedding_type"] = rope ? "rope" : "nope";
  if (!config.contains("shared_intermediate_size"))
    config["shared_intermediate_size"] = config.value("intermediate_size", int64_t{0});
  return {};
}

// OLMo 3 has OLMo 2's architecture, and a window. Its rope is scaled on layers without the window alone.
void set_olmo2(const GgufMetadata& metadata, Json& config) {
  if (!config.contains("sliding_window")) return;
  config["model_type"] = "olmo3";
  const Json full = config["rope_parameters"];
  const GgufValue* base = metadata.find("rope.freq_base_swa");
  const Json theta = base ? Json(base->number().value_or(0)) : full["rope_theta"];
  config["rope_parameters"] =
      Json{{"full_attention", full}, {"sliding_attention", Json{{"rope_theta", theta}}}};
}

// Sizes that shapes say, and what llama.cpp has where files of its first days leave keys out: the last layers
// from the 20th on share keys, the first 10 feed-forwards have 95 % of their gates off.
Status set_gemma3n(const GgufMetadata& metadata, Json& config) {
  const Checkpoint& checkpoint = metadata.checkpoint;
  ASSIGN_OR_RETURN(const CheckpointTensor* laurel, checkpoint.require("blk.0.laurel_l.weight"));
  ASSIGN_OR_RETURN(const CheckpointTensor* table, checkpoint.require("per_layer_token_embd.weight"));
  if (laurel->shape.rank() != 2 || table->shape.rank() != 2)
    return bad_file("its shape is not that of a matrix",
                    laurel->shape.rank() != 2 ? laurel->name : table->name);
  config["laurel_rank"] = laurel->shape[0];
  config["vocab_size_per_layer_input"] = table->shape[0];
  const int64_t layers = layers_of(config);
  if (!config.contains("num_kv_shared_layers"))
    config["num_kv_shared_layers"] = std::max<int64_t>(layers - 20, 0);
  if (!config.contains("hidden_size_per_layer_input")) config["hidden_size_per_layer_input"] = 256;
  const auto widths = by_layer(metadata.find("feed_forward_length"), layers);
  const GgufValue* key = metadata.find("activation_sparsity_scale");
  const std::vector<float> deviations =
      key ? key->floats().value_or(std::vector<float>{}) : std::vector<float>{};
  config["intermediate_size"] = widths;
  for (int64_t i = 0; i < layers; ++i) {
    double share = i < 10 ? 0.95 : 0;
    if (static_cast<size_t>(i) < deviations.size())
      share = 0.5 * (1 + std::erf(deviations[static_cast<size_t>(i)] / std::sqrt(2.0)));
    config["activation_sparsity_pattern"].push_back(share);
  }
  return {};
}

// Read by name in gguf_config.cc or here.
constexpr std::string_view kRead[] = {"block_count",
                                      "embedding_length",
                                      "feed_forward_length",
                                      "context_length",
                                      "attention.head_count",
                                      "attention.head_count_kv",
                                      "attention.key_length",
                                      "attention.sliding_window",
                                      "attention.sliding_window_pattern",
                                      "attention.layer_norm_epsilon",
                                      "attention.layer_norm_rms_epsilon",
                                      "attention.key_length_mla",
                                      "attention.value_length_mla",
                                      "rope.dimension_count",
                                      "rope.freq_base",
                                      "rope.freq_base_swa",
                                      "rope.scaling.type",
                                      "rope.scaling.factor",
                                      "rope.scaling.original_context_length",
                                      "rope.scaling.yarn_beta_fast",
                                      "rope.scaling.yarn_beta_slow",
                                      "activation_sparsity_scale",
                                      "expert_count"};
// Sizes that shapes decide or that nothing computes with, and records of converters.
constexpr std::string_view kHarmless[] = {"vocab_size",
                                          "attention.value_length",
                                          "attention.key_length_swa",
                                          "attention.value_length_swa",
                                          "rope.dimension_count_swa",
                                          "rope.scaling.finetuned",
                                          "expert_feed_forward_length",
                                          "expert_shared_feed_forward_length",
                                          "expert_shared_count",
                                          "rope.dimension_sections",  // of images; text has one position
                                          "tensor_data_layout",
                                          "pooling_type"};
// Harmless where they have this value.
struct NeutralKey {
  std::string_view key;
  double value;
};
constexpr NeutralKey kNeutral[] = {{"rope.scaling.attn_factor", 1},
                                   {"rope.scaling.yarn_attn_factor", 1},
                                   {"rope.scaling.yarn_ext_factor", 1},
                                   {"rope.scaling.yarn_ext_factor", -1},
                                   {"rope.scale_linear", 1},
                                   {"expert_weights_scale", 1},
                                   {"expert_group_count", 1},
                                   {"expert_group_used_count", 1},
                                   {"residual_scale", 1},
                                   {"embedding_scale", 1}};

bool is_zero(const GgufValue& value) {
  const auto list = value.integers();
  if (list) return std::all_of(list->begin(), list->end(), [](int64_t each) { return each == 0; });
  return value.number() == 0 || value.boolean() == false || value.string() == "";
}

bool is_among(std::span<const std::string_view> keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool is_read(const GgufMetadata& metadata, std::string_view key, const GgufValue& value) {
  const GgufArchitecture& kind = metadata.kind;
  if (is_among(kRead, key) || is_among(kHarmless, key)) return true;
  for (const GgufKey& each : kind.keys) {
    if (each.gguf == key) return true;
  }
  for (const NeutralKey& each : kNeutral) {
    if (each.key == key && value.number() == each.value) return true;
  }
  // Where weights of experts are renormalised or not, as the architecture says, and no table has the key.
  if (key == "expert_weights_norm") return value.boolean() != (kind.name == "jamba");
  if (key == "attention.causal") return value.boolean() == true;
  if (key == "rope.scaling.yarn_log_multiplier") return kind.latent;
  if (key == "rope.scaling.attn_factor")
    return metadata.checkpoint.find("rope_factors_long.weight") != nullptr;
  // Sizes of state-space layers, which Granite's files without any have too.
  if (key.starts_with("ssm.") && key != "ssm.dt_b_c_rms") return true;
  if (key == "ssm.dt_b_c_rms" && kind.name == "mamba") return true;
  if (key == "expert_gating_func")
    return kind.name == "deepseek2" || value.integer() == static_cast<int64_t>(kind.gating);
  return is_zero(value);
}

}  // namespace

bool GgufMetadata::has_experts() const {
  const GgufValue* count = find("expert_count");
  return count && count->integer().value_or(0) > 0;
}

Result<int64_t> gguf_shared_size(const GgufMetadata& metadata, std::string_view key) {
  const GgufValue* value = metadata.find(key);
  const auto list = value ? value->integers() : std::nullopt;
  if (!list) return metadata.checkpoint.gguf().integer(metadata.prefix + std::string(key));
  int64_t size = 0;
  for (const int64_t each : *list) {
    if (each != 0 && size != 0 && each != size)
      return unsupported(fmt::format("'{}{}' differs from layer to layer", metadata.prefix, key),
                         metadata.checkpoint.path());
    if (each != 0) size = each;
  }
  return size;
}

Status set_latent_sizes(const GgufMetadata& metadata, Json& config) {
  const GgufFile& gguf = metadata.checkpoint.gguf();
  const bool absorbed = metadata.find("attention.key_length_mla") != nullptr;
  const std::string suffix = absorbed ? "_length_mla" : "_length";
  ASSIGN_OR_RETURN(const int64_t rotated, gguf.integer(metadata.prefix + "rope.dimension_count"));
  ASSIGN_OR_RETURN(const int64_t key, gguf.integer(metadata.prefix + "attention.key" + suffix));
  config["qk_rope_head_dim"] = rotated;
  config["qk_nope_head_dim"] = key - rotated;
  if (metadata.find("attention.value" + suffix)) {
    ASSIGN_OR_RETURN(config["v_head_dim"], gguf.integer(metadata.prefix + "attention.value" + suffix));
  }
  config.erase("head_dim");
  config.erase("num_key_value_heads");
  return {};
}

Status set_layer_kinds(const GgufMetadata& metadata, Json& config) {
  const GgufLayerKinds& kinds = metadata.kind.layers;
  if (kinds.config.empty()) return {};
  const std::string key(kinds.config);
  const int64_t layers = layers_of(config);
  const std::vector<int64_t> heads = by_layer(metadata.find("attention.head_count_kv"), layers),
                             widths = by_layer(metadata.find("feed_forward_length"), layers);
  if (key == "attn_layer") {
    std::vector<bool> attends, routed;
    for (int64_t i = 0; i < layers; ++i) {
      attends.push_back(heads[static_cast<size_t>(i)] > 0);
      routed.push_back(metadata.checkpoint.find(fmt::format("blk.{}.ffn_gate_inp.weight", i)) != nullptr);
    }
    RETURN_IF_ERROR(set_period(metadata, key, attends, config));
    const bool any = std::find(routed.begin(), routed.end(), true) != routed.end();
    return any ? set_period(metadata, "expert_layer", routed, config) : Status{};
  }
  for (size_t i = 0; i < heads.size(); ++i) {
    const bool feeds = !kinds.feeds.empty() && widths[i] > 0;
    config[key].push_back(std::string(feeds ? kinds.feeds : heads[i] > 0 ? kinds.attends : kinds.other));
  }
  return {};
}

void set_windowed_layers(const GgufMetadata& metadata, Json& config) {
  if (!config.contains("sliding_window")) return;
  int64_t every = metadata.kind.full_every;
  std::vector<bool> windowed;
  if (const GgufValue* pattern = metadata.find("attention.sliding_window_pattern")) {
    every = pattern->integer().value_or(every);
    if (const auto flags = pattern->booleans()) windowed = *flags;
    if (const auto numbers = pattern->integers()) windowed.assign(numbers->begin(), numbers->end());
  }
  if (every <= 0 && windowed.empty()) return;
  config.erase("sliding_window_pattern");
  for (int64_t i = 0; i < layers_of(config); ++i) {
    const auto at = static_cast<size_t>(i);
    const bool slides = windowed.empty() ? (i + 1) % every != 0 : at < windowed.size() && windowed[at];
    config["layer_types"].push_back(slides ? "sliding_attention" : "full_attention");
  }
}

Status set_exceptions(const GgufMetadata& metadata, Json& config) {
  const std::string_view name = metadata.kind.name;
  if (name == "deepseek2") return set_deepseek(metadata, config);
  if (name == "gemma3n") return set_gemma3n(metadata, config);
  if (name == "olmo2") set_olmo2(metadata, config);
  if (name == "llama4") return set_llama4(metadata, config);
  if (name.starts_with("granite")) return set_granite(metadata, config);
  const GgufValue* normed = metadata.find("ssm.dt_b_c_rms");
  // The epsilon of Falcon Mamba, which files do not have.
  if (name == "mamba" && normed && normed->boolean().value_or(false)) config["mixer_rms_eps"] = 1e-6;
  return {};
}

Status refuse_unread_keys(const GgufMetadata& metadata) {
  for (const GgufEntry& entry : metadata.checkpoint.gguf().metadata) {
    if (!entry.key.starts_with(metadata.prefix)) continue;
    if (is_read(metadata, entry.key.substr(metadata.prefix.size()), entry.value)) continue;
    return unsupported(fmt::format("the key '{}' is not supported with this value", entry.key),
                       metadata.checkpoint.path(), "It may change the arithmetic.");
  }
  return {};
}

}  // namespace tenon
