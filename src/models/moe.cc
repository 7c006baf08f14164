// Mixtures of experts around a Llama-like block: Mixtral, Qwen2 and Qwen3 MoE, OLMoE, FlexOLMo, MiniMax M2,
// GLM 4 MoE, Solar Open, dots.1, ERNIE 4.5 MoE, Hunyuan MoE, GPT-OSS.
#include <algorithm>

#include "models/experts.h"
#include "models/family.h"
#include "models/rope.h"

namespace tenon {
namespace {

MoeSpec softmax_router(ConfigReader& config, bool renormalise) {
  MoeSpec moe;
  moe.top_k.k = config.positive("num_experts_per_tok");
  moe.renormalise = renormalise;
  return moe;
}

Result<ModelSpec> read_mixtral(ConfigReader& config) {
  ModelSpec spec = read_decoder(config, {});
  set_windows(spec, read_windows(config));
  const MoeSpec moe = softmax_router(config, true);
  const ExpertSizes sizes{config.positive("num_local_experts"), config.positive("intermediate_size")};
  const ExpertNames names{.file = "block_sparse_moe", .gate = "w1", .up = "w3", .down = "w2"};
  for (size_t i = 0; i < spec.blocks.size(); ++i) set_experts(spec, i, moe, names, sizes);
  return spec;
}

Result<ModelSpec> read_qwen_moe(ConfigReader& config, const DecoderTraits& traits) {
  ModelSpec spec = read_decoder(config, traits);
  set_windows(spec, config.has("sliding_window") && config.integer("sliding_window") == 0
                        ? std::vector<int64_t>(spec.blocks.size(), 0)
                        : read_windows(config));
  for (const char* key : {"use_sliding_window", "max_window_layers", "layer_types"}) config.ignore(key);
  set_qwen_experts(config, spec, config.flag_or("norm_topk_prob", false));
  return spec;
}

Result<ModelSpec> read_qwen2_moe(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("qkv_bias", true));
  return read_qwen_moe(config, traits);
}

Result<ModelSpec> read_qwen3_moe(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.qk_norm = QkNorm::head;
  return read_qwen_moe(config, traits);
}

Result<ModelSpec> read_olmoe(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.qk_norm = QkNorm::width;
  if (config.text_or("model_type", "") == "flex_olmo") {
    traits.names.mixer_norm = "";
    traits.names.mixer_post_norm = "post_attention_layernorm";
    traits.names.feed_forward_norm = "";
    traits.names.feed_forward_post_norm = "post_feedforward_layernorm";
  }
  ModelSpec spec = read_decoder(config, traits);
  const double clip = config.number_or("clip_qkv", 0);
  const MoeSpec moe = softmax_router(config, config.flag_or("norm_topk_prob", false));
  const ExpertSizes sizes{config.positive("num_experts"), config.positive("intermediate_size")};
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    attention_of(spec.blocks[i]).qkv_clip = clip;
    set_experts(spec, i, moe, {}, sizes);
  }
  return spec;
}

Result<ModelSpec> read_minimax_m2(ConfigReader& config) {
  DecoderTraits traits;
  traits.qk_norm = QkNorm::width;
  // Published files say how much of a head is rotated by rotary_dim alone.
  if (config.has("rotary_dim") && config.has("head_dim"))
    traits.rotary =
        static_cast<double>(config.positive("rotary_dim")) / static_cast<double>(config.positive("head_dim"));
  ModelSpec spec = read_decoder(config, traits);
  MoeSpec moe = softmax_router(config, true);
  moe.scores = RouterScores::sigmoid;
  const ExpertNames names{.file = "block_sparse_moe",
                          .gate = "w1",
                          .up = "w3",
                          .down = "w2",
                          .selection_bias = "e_score_correction_bias"};
  const ExpertSizes sizes{config.positive("num_local_experts"), config.positive("intermediate_size")};
  for (size_t i = 0; i < spec.blocks.size(); ++i) set_experts(spec, i, moe, names, sizes);
  return spec;
}

// DeepSeek-V3's experts after `first_k_dense_replace` dense layers.
void set_deepseek_experts(ConfigReader& config, ModelSpec& spec, size_t dense) {
  const MoeSpec moe = read_deepseek_router(config);
  const int64_t width = config.positive("moe_intermediate_size");
  const ExpertSizes sizes{config.positive("n_routed_experts"), width,
                          width * config.positive_or("n_shared_experts", 1)};
  for (size_t i = dense; i < spec.blocks.size(); ++i) {
    set_experts(spec, i, moe, {.selection_bias = "gate.e_score_correction_bias"}, sizes);
  }
}

size_t dense_layers(ConfigReader& config) {
  return config.has("first_k_dense_replace")
             ? static_cast<size_t>(std::max<int64_t>(0, config.integer("first_k_dense_replace")))
             : 0;
}

Result<ModelSpec> read_glm4_moe(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.rotary = 0.5;
  if (config.flag_or("use_qk_norm", false)) traits.qk_norm = QkNorm::head;
  traits.intermediate = 1;  // absent where no layer is dense
  ModelSpec spec = read_decoder(config, traits);
  config.ignore("num_nextn_predict_layers");
  set_deepseek_experts(config, spec, dense_layers(config));
  return spec;
}

Result<ModelSpec> read_dots1(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.qk_norm = QkNorm::head;
  ModelSpec spec = read_decoder(config, traits);
  set_windows(spec, read_windows(config));
  set_deepseek_experts(config, spec, dense_layers(config));
  return spec;
}

Result<ModelSpec> read_ernie_moe(ConfigReader& config) {
  DecoderTraits traits;
  const bool bias = config.flag_or("use_bias", false);
  traits.set_qkv_bias(bias);
  traits.o_bias = bias;
  traits.set_mlp_bias(bias);
  traits.interleaved = true;
  traits.tied = true;
  ModelSpec spec = read_decoder(config, traits);
  MoeSpec moe;
  moe.top_k.k = config.positive("moe_k");
  moe.renormalise = true;
  config.ignore("moe_norm_min");
  config.require(!bias, "use_bias", "is not supported with experts");
  const int64_t width = config.positive("moe_intermediate_size");
  const ExpertSizes sizes{
      config.positive("moe_num_experts"), width,
      config.has("moe_num_shared_experts") ? width * config.integer("moe_num_shared_experts") : 0};
  const int64_t first = config.has("moe_layer_start_index") ? config.integer("moe_layer_start_index") : 1;
  const int64_t last = config.has("moe_layer_end_index") ? config.integer("moe_layer_end_index") : -1;
  const int64_t step = config.positive_or("moe_layer_interval", 1);
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    const int64_t layer = static_cast<int64_t>(i);
    if (layer < first || (last >= 0 && layer > last) || (layer + 1) % step != 0) continue;
    set_experts(spec, i, moe, {.selection_bias = "moe_statics.e_score_correction_bias"}, sizes);
    const std::string bias_name = std::get<MoeSpec>(spec.blocks[i].feed_forward).selection_bias;
    spec.stored[bias_name][0].transposed = true;
  }
  return spec;
}

Result<ModelSpec> read_hunyuan_moe(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.qk_norm = QkNorm::head;
  traits.names.q_norm = "query_layernorm";
  traits.names.k_norm = "key_layernorm";
  ModelSpec spec = read_decoder(config, traits);
  MoeSpec moe;
  moe.top_k.k = config.positive("moe_topk");
  moe.renormalise = true;
  moe.router_is_linear = true;
  const int64_t width = config.positive("intermediate_size");
  const ExpertSizes sizes{config.positive("num_experts"), width, width};
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    attention_of(spec.blocks[i]).norm_after_rope = true;
    set_experts(spec, i, moe, {.router = "gate.wg", .shared = "shared_mlp"}, sizes);
  }
  return spec;
}

// A stacked weight [experts, out, in] that the file keeps as [experts, in, out].
void store_transposed_experts(ModelSpec& spec, const std::string& name, int64_t experts, int64_t out,
                              int64_t in) {
  std::vector<StoredBlock>& blocks = spec.stored[name];
  for (int64_t e = 0; e < experts; ++e) {
    StoredBlock block;
    block.tensor = name;
    block.row = e * out;
    block.rows = out;
    block.columns = in;
    block.from_row = e * in;
    block.transposed = true;
    blocks.push_back(std::move(block));
  }
}

// Experts stacked in the file as [experts, in, out], gate and up columns alternating.
void store_gpt_oss(ModelSpec& spec, const MoeSpec& moe) {
  std::vector<StoredBlock>& up = spec.stored[moe.up_name];
  std::vector<StoredBlock>& up_bias = spec.stored[moe.up_bias];
  std::vector<StoredBlock>& down = spec.stored[moe.down_name];
  for (int64_t e = 0; e < moe.experts; ++e) {
    for (int64_t half = 0; half < 2; ++half) {
      StoredBlock block;
      block.tensor = moe.up_name;
      block.row = (2 * e + half) * moe.intermediate;
      block.rows = moe.intermediate;
      block.columns = spec.hidden;
      block.from_row = e * spec.hidden;
      block.from_column = half;
      block.stride = 2;
      block.transposed = true;
      up.push_back(block);
    }
    StoredBlock block;
    block.tensor = moe.down_name;
    block.row = e * spec.hidden;
    block.rows = spec.hidden;
    block.columns = moe.intermediate;
    block.from_row = e * moe.intermediate;
    block.transposed = true;
    down.push_back(block);
  }
  for (int64_t e = 0; e < moe.experts; ++e) {
    for (int64_t column = 0; column < 2 * moe.intermediate; ++column) {
      StoredBlock block;
      block.tensor = moe.up_bias;
      block.row = block.from_row = e;
      block.rows = block.columns = 1;
      block.column = column;
      block.from_column = column % moe.intermediate * 2 + column / moe.intermediate;
      up_bias.push_back(block);
    }
  }
}

Result<ModelSpec> read_gpt_oss(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", true));
  traits.o_bias = traits.q_bias;
  traits.head_dim = 64;
  ModelSpec spec = read_decoder(config, traits);
  set_windows(spec, read_windows(config));
  MoeSpec moe;
  moe.top_k.k = config.positive_or("num_experts_per_tok", 4);
  config.ignore("experts_per_token");
  config.ignore("initial_context_length");
  moe.scores = RouterScores::softmax_of_chosen;
  moe.router.bias = true;
  moe.experts = config.positive("num_local_experts");
  moe.intermediate = config.positive("intermediate_size");
  moe.inner.limit = config.number_or("swiglu_limit", 7);
  moe.inner.swish = config.number_or("swiglu_alpha", 1.702);
  moe.inner.up_offset = 1;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    const std::string path = layer_path(traits, i);
    attention_of(spec.blocks[i]).attend.sinks = path + ".self_attn.sinks";
    moe.router = {path + ".mlp.router", spec.hidden, moe.experts, true};
    moe.up_name = path + ".mlp.experts.gate_up_proj";
    moe.down_name = path + ".mlp.experts.down_proj";
    moe.up_bias = moe.up_name + "_bias";
    moe.down_bias = moe.down_name + "_bias";
    store_gpt_oss(spec, moe);
    spec.blocks[i].feed_forward = moe;
  }
  return spec;
}

// Llama 4's text part: chunked attention with rope on most layers, none and scaled queries on the others; one
// expert a token, its input scaled.
Result<ModelSpec> read_llama4(ConfigReader& config) {
  DecoderTraits traits;
  traits.set_qkv_bias(config.flag_or("attention_bias", false));
  traits.o_bias = traits.q_bias;
  traits.interleaved = true;
  traits.names.mlp = "feed_forward";
  config.alias("intermediate_size", "intermediate_size_mlp");
  ModelSpec spec = read_decoder(config, traits);
  const std::vector<double> rotated = config.numbers_or_empty("no_rope_layers");
  const std::vector<bool> chunked = layers_of_kind(config, "chunked_attention");
  config.require(rotated.size() == spec.blocks.size(), "no_rope_layers", "must have one entry a layer");
  const bool qk_norm = config.flag_or("use_qk_norm", true);
  const int64_t chunk = config.positive_or("attention_chunk_size", 8192);
  const PositionScale scale{.beta = config.number_or("attn_scale", 0.1),
                            .shift = 1,
                            .period = static_cast<int64_t>(config.number_or("floor_scale", 8192))};
  const bool tuned = config.flag_or("attn_temperature_tuning", true);
  MoeSpec moe;
  moe.scores = RouterScores::sigmoid_of_chosen;
  moe.top_k.k = config.positive("num_experts_per_tok");
  moe.experts = config.positive("num_local_experts");
  config.alias("expert_size", "intermediate_size");
  moe.intermediate = config.positive("expert_size");
  moe.scale_inputs = true;
  const int64_t step = config.positive_or("interleave_moe_layer_step", 1);
  std::vector<double> sparse = config.numbers_or_empty("moe_layers");
  const bool listed = !sparse.empty();
  for (size_t i = 0; !listed && i < spec.blocks.size(); ++i) {
    if ((static_cast<int64_t>(i) + 1) % step == 0) sparse.push_back(static_cast<double>(i));
  }
  if (!config.status().ok()) return spec;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& a = attention_of(spec.blocks[i]);
    if (chunked.empty() ? rotated[i] != 0 : chunked[i]) a.attend.chunk = chunk;
    if (rotated[i] == 0) a.rope = -1;
    if (rotated[i] == 0 && tuned) a.q_scale = scale;
    if (rotated[i] != 0 && qk_norm) {
      a.q_norm = rms_norm_spec("", a.head_dim, spec.final_norm.eps);
      a.q_norm.weight = false;
      a.k_norm = a.q_norm;
      a.norm_after_rope = true;
    }
    if (std::find(sparse.begin(), sparse.end(), static_cast<double>(i)) == sparse.end()) continue;
    const std::string path = layer_path(traits, i) + ".feed_forward";
    moe.router = {path + ".router", spec.hidden, moe.experts};
    moe.router_is_linear = true;
    moe.up_name = path + ".experts.gate_up_proj";
    moe.down_name = path + ".experts.down_proj";
    const std::string shared = path + ".shared_expert.";
    MlpSpec mlp;
    mlp.gate = {shared + "gate_proj", spec.hidden, moe.intermediate};
    mlp.up = {shared + "up_proj", spec.hidden, moe.intermediate};
    mlp.down = {shared + "down_proj", moe.intermediate, spec.hidden};
    moe.shared = mlp;
    store_transposed_experts(spec, moe.up_name, moe.experts, 2 * moe.intermediate, spec.hidden);
    store_transposed_experts(spec, moe.down_name, moe.experts, spec.hidden, moe.intermediate);
    spec.blocks[i].feed_forward = moe;
  }
  return spec;
}

// EXAONE MoE: pre-norm, rope on sliding layers alone, DeepSeek-V3's router.
Result<ModelSpec> read_exaone_moe(ConfigReader& config) {
  DecoderTraits traits;
  traits.qk_norm = QkNorm::head;
  ModelSpec spec = read_decoder(config, traits);
  const std::vector<int64_t> windows = read_windows(config);
  set_windows(spec, windows);
  const MoeSpec moe = read_deepseek_router(config);
  const int64_t width = config.positive("moe_intermediate_size");
  const ExpertSizes sizes{config.positive("num_experts"), width,
                          width * config.positive_or("num_shared_experts", 1)};
  const std::vector<std::string> types = config.texts_or_empty("mlp_layer_types");
  const size_t dense = dense_layers(config);
  config.require(types.empty() || types.size() == spec.blocks.size(), "mlp_layer_types",
                 "must have one entry a layer");
  if (!config.status().ok()) return spec;
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    if (windows[i] == 0) attention_of(spec.blocks[i]).rope = -1;
    if (types.empty() ? i < dense : types[i] == "dense") continue;
    set_experts(spec, i, moe, {.selection_bias = "e_score_correction_bias"}, sizes);
  }
  return spec;
}

constexpr std::array kExaoneMoeGguf = {GgufLayout{"exaone-moe"}};
constexpr std::array kGptOssGguf = {GgufLayout{"gpt-oss"}};
constexpr std::array kOlmoeGguf = {GgufLayout{"olmoe"}};
constexpr std::array kGlm4moeGguf = {GgufLayout{"glm4moe"}};
constexpr std::array kDots1Gguf = {GgufLayout{"dots1"}};
constexpr std::array kErnieMoeGguf = {GgufLayout{"ernie4_5-moe"}};
constexpr std::array kQwen2moeGguf = {GgufLayout{"qwen2moe"}};
constexpr std::array kQwen3moeGguf = {GgufLayout{"qwen3moe"}};

constexpr std::array kLlama4Gguf = {GgufLayout{"llama4"}};
constexpr std::array kHunyuanV1MoeGguf = {GgufLayout{"hunyuan-moe"}};
constexpr std::array kMinimaxM2Gguf = {GgufLayout{"minimax-m2"}};
constexpr Family kFamilies[] = {
    {"llama4", {"llama4_text"}, kLlama4Gguf, read_llama4},
    {"exaone_moe", {"exaone_moe"}, kExaoneMoeGguf, read_exaone_moe},
    {"mixtral", {"mixtral"}, {}, read_mixtral},
    {"qwen2_moe", {"qwen2_moe"}, kQwen2moeGguf, read_qwen2_moe},
    {"qwen3_moe", {"qwen3_moe"}, kQwen3moeGguf, read_qwen3_moe},
    {"olmoe", {"olmoe", "flex_olmo"}, kOlmoeGguf, read_olmoe},
    {"minimax_m2", {"minimax_m2"}, kMinimaxM2Gguf, read_minimax_m2},
    {"glm4_moe", {"glm4_moe", "solar_open"}, kGlm4moeGguf, read_glm4_moe},
    {"dots1", {"dots1"}, kDots1Gguf, read_dots1},
    {"ernie4_5_moe", {"ernie4_5_moe"}, kErnieMoeGguf, read_ernie_moe},
    {"hunyuan_v1_moe", {"hunyuan_v1_moe"}, kHunyuanV1MoeGguf, read_hunyuan_moe},
    {"gpt_oss", {"gpt_oss"}, kGptOssGguf, read_gpt_oss},
};

}  // namespace

std::span<const Family> moe_families() {
  return kFamilies;
}

}  // namespace tenon
