// Gemma 3n: streams of alternating updates, sparse gates, per-layer inputs. Gemma 4: norms that are not
// zero-centred, head sizes by kind of layer, keys used as values, layers that share keys and values,
// per-layer inputs, a dense MLP beside experts.
#include <cmath>
#include <map>

#include "models/decoder.h"
#include "models/family.h"
#include "models/rope.h"

namespace tenon {
namespace {

// Sizes of full-attention layers, which differ from those of sliding ones.
struct FullSizes {
  int64_t head_dim, kv_heads;
};

FullSizes read_full_sizes(ConfigReader& config, const std::vector<bool>& sliding, int64_t kv_heads) {
  FullSizes sizes{config.positive_or("global_head_dim", 512),
                  config.positive_or("num_global_key_value_heads", kv_heads)};
  auto by_layer = config.object("per_layer_config");
  if (!by_layer) return sizes;
  for (size_t i = 0; i < sliding.size(); ++i) {
    if (sliding[i]) continue;
    auto layer = by_layer->object(std::to_string(i));
    config.require(layer.has_value(), "per_layer_config", "lacks a layer of full attention");
    if (!layer) return sizes;
    sizes = {layer->positive("head_dim"), layer->positive_or("num_key_value_heads", kv_heads)};
    if (const Status status = layer->status(); !status.ok()) config.fail(status.error());
  }
  return sizes;
}

void set_size(AttentionSpec& a, const ModelSpec& spec, const FullSizes& s) {
  a.head_dim = a.v_head_dim = s.head_dim;
  a.kv_heads = s.kv_heads;
  a.q.out = a.o.in = a.heads * s.head_dim;
  a.k.out = a.v.out = a.kv_heads * s.head_dim;
  a.q_norm.width = a.k_norm.width = s.head_dim;
  a.q.in = a.k.in = a.v.in = spec.hidden;
}

AsideSpec experts_aside(ConfigReader& config, const ModelSpec& spec, const std::string& path, double eps) {
  AsideSpec aside;
  MoeSpec& moe = aside.moe;
  moe.experts = config.positive("num_experts");
  moe.intermediate = config.positive("moe_intermediate_size");
  moe.top_k.k = config.positive("top_k_experts");
  moe.renormalise = true;
  moe.router = {path + ".router.proj", spec.hidden, moe.experts};
  moe.router_is_linear = true;
  moe.router.scale = 1 / std::sqrt(static_cast<double>(spec.hidden));
  moe.router_norm = rms_norm_spec(path + ".router.scale", spec.hidden, eps);
  moe.expert_scale = path + ".router.per_expert_scale";
  moe.up_name = path + ".experts.gate_up_proj";
  moe.down_name = path + ".experts.down_proj";
  moe.inner.activation = std::get<MlpSpec>(spec.blocks[0].feed_forward).activation;
  aside.pre = rms_norm_spec(path + ".pre_feedforward_layernorm_2", spec.hidden, eps);
  aside.post = rms_norm_spec(path + ".post_feedforward_layernorm_2", spec.hidden, eps);
  aside.first_post = rms_norm_spec(path + ".post_feedforward_layernorm_1", spec.hidden, eps);
  return aside;
}

void set_per_layer_inputs(ConfigReader& config, ModelSpec& spec, const DecoderTraits& traits, double eps) {
  const int64_t width =
      config.has("hidden_size_per_layer_input") ? config.integer("hidden_size_per_layer_input") : 0;
  const int64_t vocab = config.positive_or("vocab_size_per_layer_input", spec.vocab);
  if (width == 0) return;
  const int64_t blocks = static_cast<int64_t>(spec.blocks.size());
  spec.per_layer_width = width;
  spec.per_layer_vocab = vocab;
  spec.per_layer_path = "model.embed_tokens_per_layer";
  spec.per_layer_projection = {"model.per_layer_model_projection", spec.hidden, blocks * width};
  spec.per_layer_projection.scale = 1 / std::sqrt(static_cast<double>(spec.hidden));
  spec.per_layer_norm = rms_norm_spec("model.per_layer_projection_norm", width, eps);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    const std::string path = layer_path(traits, i);
    spec.blocks[i].per_layer =
        PerLayerInput{{path + ".per_layer_input_gate", spec.hidden, width},
                      {path + ".per_layer_projection", width, spec.hidden},
                      rms_norm_spec(path + ".post_per_layer_input_norm", spec.hidden, eps),
                      mlp_of(spec.blocks[i]).activation};
  }
}

// The last layers take keys and values of the last layer of their kind before them.
void share_keys(ConfigReader& config, ModelSpec& spec, const std::vector<bool>& sliding) {
  const int64_t shared = config.has("num_kv_shared_layers") ? config.integer("num_kv_shared_layers") : 0;
  const bool wide = config.flag_or("use_double_wide_mlp", false);
  const int64_t first = static_cast<int64_t>(spec.blocks.size()) - shared;
  config.require(shared >= 0 && first >= 0, "num_kv_shared_layers", "is more than there are layers");
  if (!config.status().ok()) return;
  for (size_t i = static_cast<size_t>(first); i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    for (int64_t j = first; j-- > 0 && a.kv_from < 0;) {
      if (sliding[static_cast<size_t>(j)] == sliding[i]) a.kv_from = static_cast<int32_t>(j);
    }
    config.require(a.kv_from >= 0, "num_kv_shared_layers", "leaves no layer to share with");
    MlpSpec& mlp = mlp_of(spec.blocks[i]);
    if (wide) mlp.gate.out = mlp.up.out = mlp.down.in = 2 * mlp.down.in;
  }
}

DecoderTraits gemma4_traits(ConfigReader& config) {
  DecoderTraits traits;
  traits.names.mixer_post_norm = "post_attention_layernorm";
  traits.names.feed_forward_norm = "pre_feedforward_layernorm";
  traits.names.feed_forward_post_norm = "post_feedforward_layernorm";
  traits.activation_key = "hidden_activation";
  traits.activation = "gelu_pytorch_tanh";
  traits.qk_norm = QkNorm::head;
  traits.tied = true;
  traits.rope = false;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  return traits;
}

struct AltUpSizes {
  int64_t streams, laurel_rank;
  bool scaled;
};

Result<ModelSpec> read_gemma4(ConfigReader& config) {
  const DecoderTraits traits = gemma4_traits(config);
  ModelSpec spec = read_decoder(config, traits);
  const std::vector<bool> sliding = layers_of_kind(config, "sliding_attention");
  config.require(sliding.size() == spec.blocks.size(), "layer_types", "must have one entry a layer");
  const std::string bidirectional = config.text_or("use_bidirectional_attention", "");
  config.require(bidirectional.empty() || bidirectional == "vision", "use_bidirectional_attention",
                 "must be absent or vision");
  const bool keys_as_values =
      config.flag_or("attention_k_eq_v", config.text_or("model_type", "") != "gemma4_text");
  const int64_t window = config.positive("sliding_window");
  if (!config.status().ok() || spec.blocks.empty()) return spec;
  spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden));
  spec.logit_softcap = config.number_or("final_logit_softcapping", 0);
  const AttentionSpec base = attention_of(spec.blocks[0]);
  const FullSizes full = read_full_sizes(config, sliding, base.kv_heads);
  spec.ropes = {read_rope(config, {.head_dim = full.head_dim, .layer_type = "full_attention"}),
                read_rope(config, {.head_dim = base.head_dim, .layer_type = "sliding_attention"})};
  const double eps = spec.final_norm.eps;
  const bool experts = config.flag_or("enable_moe_block", false);
  for (const char* key : {"moe_intermediate_size", "num_experts", "top_k_experts"}) config.ignore(key);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    const std::string path = layer_path(traits, i);
    BlockSpec& block = spec.blocks[i];
    AttentionSpec& a = attention_of(block);
    if (!sliding[i]) set_size(a, spec, full);
    a.rope = sliding[i] ? 1 : 0;
    a.attend.window = sliding[i] ? window : 0;
    a.attend.scale = 1;
    a.v_is_k = keys_as_values && !sliding[i];
    a.v_norm = rms_norm_spec("", a.head_dim, eps);
    a.v_norm.weight = false;
    block.output_scale = path + ".layer_scalar";
    if (experts) block.aside = experts_aside(config, spec, path, eps);
    spec.renames.emplace_back(path + ".router.scale.weight", path + ".router.scale");
  }
  share_keys(config, spec, sliding);
  set_per_layer_inputs(config, spec, traits, eps);
  return spec;
}

// The value below which a share `p` of a normal distribution lies, by bisection.
double normal_quantile(double p) {
  double low = -10, high = 10;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * (1 + std::erf(middle / std::sqrt(2.0))) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

AltUpSpec altup(const ModelSpec& spec, const std::string& path, const AltUpSizes& s, double eps) {
  AltUpSpec out;
  out.router_norm = rms_norm_spec(path + ".altup.router_norm", spec.hidden, eps);
  out.router = {path + ".altup.modality_router", spec.hidden, s.streams};
  out.prediction = {path + ".altup.prediction_coefs", s.streams, s.streams * s.streams};
  out.correction = {path + ".altup.correction_coefs", s.streams, s.streams};
  if (s.scaled) out.output_scale = path + ".altup.correct_output_scale";
  out.laurel_down = {path + ".laurel.linear_left", spec.hidden, s.laurel_rank};
  out.laurel_up = {path + ".laurel.linear_right", s.laurel_rank, spec.hidden};
  out.laurel_norm = rms_norm_spec(path + ".laurel.post_laurel_norm", spec.hidden, eps);
  return out;
}

Result<ModelSpec> read_gemma3n(ConfigReader& config) {
  DecoderTraits traits = gemma4_traits(config);
  const std::vector<double> widths = config.numbers_or_empty("intermediate_size");
  traits.intermediate = 1;
  config.suppose("intermediate_size", 1);
  config.alias("intermediate_size", "intermediate_size of one layer");
  ModelSpec spec = read_decoder(config, traits);
  const std::vector<bool> sliding = layers_of_kind(config, "sliding_attention");
  const std::vector<double> sparsity = config.numbers_or_empty("activation_sparsity_pattern");
  config.require(sliding.size() == spec.blocks.size(), "layer_types", "must have one entry a layer");
  config.require(widths.size() == spec.blocks.size(), "intermediate_size", "must have one entry a layer");
  config.require(sparsity.empty() || sparsity.size() == spec.blocks.size(), "activation_sparsity_pattern",
                 "must have one entry a layer");
  config.require(!config.has("altup_active_idx") || config.integer("altup_active_idx") == 0,
                 "altup_active_idx", "must be 0");
  config.ignore("altup_coef_clip");
  const AltUpSizes sizes{config.positive("altup_num_inputs"), config.positive("laurel_rank"),
                         config.flag_or("altup_correct_scale", true)};
  const int64_t window = config.positive("sliding_window");
  if (!config.status().ok() || spec.blocks.empty()) return spec;
  spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden));
  spec.logit_softcap = config.number_or("final_logit_softcapping", 0);
  const int64_t head_dim = attention_of(spec.blocks[0]).head_dim;
  spec.ropes = {read_rope(config, {.head_dim = head_dim, .layer_type = "full_attention"}),
                config.has("rope_parameters")
                    ? read_rope(config, {.head_dim = head_dim, .layer_type = "sliding_attention"})
                    : plain_rope(config.number_or("rope_local_base_freq", 10000), head_dim)};
  const double eps = spec.final_norm.eps;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i];
    AttentionSpec& a = attention_of(block);
    MlpSpec& mlp = mlp_of(block);
    a.rope = sliding[i] ? 1 : 0;
    a.attend.window = sliding[i] ? window : 0;
    a.attend.scale = 1;
    a.v_norm = rms_norm_spec("", head_dim, eps);
    a.v_norm.weight = false;
    mlp.gate.out = mlp.up.out = mlp.down.in = static_cast<int64_t>(widths[i]);
    if (!sparsity.empty() && sparsity[i] > 0) mlp.gate_cutoff = normal_quantile(sparsity[i]);
    block.altup = altup(spec, layer_path(traits, i), sizes, eps);
  }
  share_keys(config, spec, sliding);
  set_per_layer_inputs(config, spec, traits, eps);
  for (int64_t s = 0; s + 1 < sizes.streams; ++s) {
    spec.stream_in.push_back({"model.altup_projections." + std::to_string(s), spec.hidden, spec.hidden});
    spec.stream_out.push_back(
        {"model.altup_unembed_projections." + std::to_string(s), spec.hidden, spec.hidden});
  }
  return spec;
}

constexpr std::array kGemma3nGguf = {GgufLayout{"gemma3n"}};

constexpr Family kFamilies[] = {
    {"gemma3n", {"gemma3n_text"}, kGemma3nGguf, read_gemma3n},
    {"gemma4", {"gemma4_text", "gemma4_unified_text"}, {}, read_gemma4},
};

}  // namespace

std::span<const Family> gemma4_families() {
  return kFamilies;
}

}  // namespace tenon
