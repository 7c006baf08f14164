#include "models/gguf_layouts.h"

#include <fmt/format.h>

namespace tenon {
namespace {

constexpr GgufKey kGemma2Keys[] = {{"attn_logit_softcapping", "attn_logit_softcapping"},
                                   {"final_logit_softcapping", "final_logit_softcapping"}};
constexpr GgufKey kGraniteKeys[] = {{"embedding_scale", "embedding_multiplier"},
                                    {"residual_scale", "residual_multiplier"},
                                    {"attention.scale", "attention_multiplier"},
                                    {"logit_scale", "logits_scaling"}};
constexpr GgufKey kCohereKeys[] = {{"logit_scale", "logit_scale"}};
constexpr GgufKey kOlmoKeys[] = {{"attention.clamp_kqv", "clip_qkv"}};
constexpr GgufKey kQwenMoeKeys[] = {{"expert_count", "num_experts"},
                                    {"expert_used_count", "num_experts_per_tok"},
                                    {"expert_feed_forward_length", "moe_intermediate_size"},
                                    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};
constexpr GgufKey kMixtralKeys[] = {{"expert_count", "num_local_experts"},
                                    {"expert_used_count", "num_experts_per_tok"}};
constexpr GgufKey kGptOssKeys[] = {{"expert_count", "num_local_experts"},
                                   {"expert_used_count", "num_experts_per_tok"},
                                   {"expert_feed_forward_length", "intermediate_size"}};
constexpr GgufKey kOlmoeKeys[] = {{"expert_count", "num_experts"},
                                  {"expert_used_count", "num_experts_per_tok"}};
constexpr GgufKey kRoutedKeys[] = {{"expert_count", "n_routed_experts"},
                                   {"expert_used_count", "num_experts_per_tok"},
                                   {"expert_feed_forward_length", "moe_intermediate_size"},
                                   {"expert_shared_count", "n_shared_experts"},
                                   {"expert_weights_scale", "routed_scaling_factor"},
                                   {"expert_weights_norm", "norm_topk_prob"},
                                   {"leading_dense_block_count", "first_k_dense_replace"},
                                   {"nextn_predict_layers", "num_nextn_predict_layers"}};
constexpr GgufKey kErnieMoeKeys[] = {{"expert_count", "moe_num_experts"},
                                     {"expert_used_count", "moe_k"},
                                     {"expert_feed_forward_length", "moe_intermediate_size"},
                                     {"expert_shared_count", "moe_num_shared_experts"},
                                     {"interleave_moe_layer_step", "moe_layer_interval"},
                                     {"leading_dense_block_count", "moe_layer_start_index"}};
constexpr GgufKey kStableLmKeys[] = {{"use_parallel_residual", "use_parallel_residual"}};

// As llama.cpp's convert_hf_to_gguf.py writes them; keys that it leaves out are implied.
constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama", .keys = kMixtralKeys, .model_type = "mixtral"},
    {.name = "qwen2moe", .keys = kQwenMoeKeys, .implied = R"({"norm_topk_prob":false})"},
    {.name = "qwen3moe", .keys = kQwenMoeKeys, .implied = R"({"norm_topk_prob":true})"},
    {.name = "olmoe", .keys = kOlmoeKeys, .implied = R"({"norm_topk_prob":false})"},
    {.name = "ernie4_5-moe", .keys = kErnieMoeKeys},
    {.name = "dots1", .keys = kRoutedKeys, .implied = R"({"n_group":1,"topk_group":1})"},
    {.name = "glm4moe",
     .norms_after = true,
     .bias_key = "attention_bias",
     .query_norm_key = "use_qk_norm",
     .keys = kRoutedKeys,
     .implied = R"({"n_group":1,"topk_group":1})"},
    {.name = "exaone4", .norms_after = true, .full_every = 4},
    {.name = "gemma", .shifted_norms = true},
    {.name = "gemma2", .shifted_norms = true, .norms_after = true, .keys = kGemma2Keys},
    {.name = "gemma3",
     .shifted_norms = true,
     .norms_after = true,
     .keys = kGemma2Keys,
     .implied =
         R"({"rope_parameters":{"sliding_attention":{"rope_theta":10000.0}},"sliding_window_pattern":6})"},
    {.name = "granite", .keys = kGraniteKeys},
    {.name = "olmo", .layer_norm = true, .eps_key = {}, .keys = kOlmoKeys},
    {.name = "olmo2", .norms_after = true},
    {.name = "starcoder2", .layer_norm = true, .eps_key = "norm_epsilon"},
    {.name = "command-r", .layer_norm = true, .eps_key = "layer_norm_eps", .keys = kCohereKeys},
    {.name = "cohere2",
     .layer_norm = true,
     .eps_key = "layer_norm_eps",
     .full_every = 4,
     .keys = kCohereKeys},
    {.name = "seed_oss", .norms_after = true, .bias_key = "attention_bias"},
    {.name = "glm4", .bias_key = "attention_bias"},
    {.name = "stablelm",
     .layer_norm = true,
     .eps_key = "layer_norm_eps",
     .bias_key = "use_qkv_bias",
     .keys = kStableLmKeys},
    {.name = "nemotron", .shifted_norms = true, .layer_norm = true, .eps_key = "norm_eps"},
    {.name = "gpt-oss",
     .norms_after = true,
     .full_every = 2,
     .keys = kGptOssKeys,
     .implied = R"({"rope_parameters":{"truncate":false}})"},
};

struct NamePair {
  std::string_view module;
  std::string_view gguf;
};

constexpr NamePair kTop[] = {
    {"model.embed_tokens.", "token_embd."},
    {"model.norm.", "output_norm."},
    {"lm_head.", "output."},
};

// Of blocks; the first that a name begins with.
constexpr NamePair kInBlock[] = {
    {"self_attn.q_proj.", "attn_q."},
    {"self_attn.k_proj.", "attn_k."},
    {"self_attn.v_proj.", "attn_v."},
    {"self_attn.o_proj.", "attn_output."},
    {"self_attn.qkv_proj.", "attn_qkv."},
    {"self_attn.q_norm.", "attn_q_norm."},
    {"self_attn.k_norm.", "attn_k_norm."},
    {"self_attn.query_layernorm.", "attn_q_norm."},
    {"self_attn.key_layernorm.", "attn_k_norm."},
    {"self_attn.sinks", "attn_sinks.weight"},
    {"input_layernorm.", "attn_norm."},
    {"pre_feedforward_layernorm.", "ffn_norm."},
    {"post_feedforward_layernorm.", "post_ffw_norm."},
    {"post_self_attn_layernorm.", "post_attention_norm."},
    {"post_mlp_layernorm.", "post_ffw_norm."},
    {"mlp.gate_proj.", "ffn_gate."},
    {"mlp.up_proj.", "ffn_up."},
    {"mlp.down_proj.", "ffn_down."},
    {"mlp.gate_up_proj.", "ffn_up."},
    {"mlp.c_fc.", "ffn_up."},
    {"mlp.c_proj.", "ffn_down."},
    {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"mlp.moe_statics.e_score_correction_bias", "exp_probs_b.bias"},
    {"mlp.gate.", "ffn_gate_inp."},
    {"mlp.router.", "ffn_gate_inp."},
    {"block_sparse_moe.gate.", "ffn_gate_inp."},
    {"mlp.shared_experts.gate_proj.", "ffn_gate_shexp."},
    {"mlp.shared_experts.up_proj.", "ffn_up_shexp."},
    {"mlp.shared_experts.down_proj.", "ffn_down_shexp."},
    {"mlp.shared_expert.gate_proj.", "ffn_gate_shexp."},
    {"mlp.shared_expert.up_proj.", "ffn_up_shexp."},
    {"mlp.shared_expert.down_proj.", "ffn_down_shexp."},
    {"mlp.shared_expert_gate.", "ffn_gate_inp_shexp."},
};

constexpr std::string_view kLayers = "model.layers.";

// "blk.3." and "self_attn.q_proj.weight" of a name in block 3; nothing of others.
struct BlockName {
  std::string block;
  std::string_view rest;
};

BlockName block_name(std::string_view name) {
  const size_t dot = name.starts_with(kLayers) ? name.find('.', kLayers.size()) : std::string_view::npos;
  if (dot == std::string_view::npos) return {};
  return {fmt::format("blk.{}.", name.substr(kLayers.size(), dot - kLayers.size())), name.substr(dot + 1)};
}

StoredBlock rows_of(std::string tensor, int64_t from_row, int64_t row, int64_t rows, int64_t columns) {
  StoredBlock block;
  block.tensor = std::move(tensor);
  block.from_row = from_row;
  block.row = row;
  block.rows = rows;
  block.columns = columns;
  return block;
}

// Gate and up of stacked experts, or their biases, side by side in the weight.
std::vector<StoredBlock> gate_and_up(const MoeSpec& moe, const std::string& block, int64_t hidden,
                                     bool biases) {
  std::vector<StoredBlock> out;
  const int64_t width = moe.intermediate;
  for (int64_t half = 0; half < 2; ++half) {
    const std::string tensor =
        block + (half == 0 ? "ffn_gate_exps." : "ffn_up_exps.") + (biases ? "bias" : "weight");
    if (biases) {
      out.push_back(rows_of(tensor, 0, 0, moe.experts, width));
      out.back().column = half * width;
      continue;
    }
    for (int64_t e = 0; e < moe.experts; ++e)
      out.push_back(rows_of(tensor, e * width, (2 * e + half) * width, width, hidden));
  }
  return out;
}

void shift(NormSpec& norm) {
  if (norm.weight_offset == 1) norm.weight_offset = 0;
}

}  // namespace

GgufArchitecture gguf_architecture(std::string_view name) {
  for (const GgufArchitecture& each : kArchitectures) {
    if (each.name == name) return each;
  }
  return {.name = name};
}

std::string gguf_tensor_name(std::string_view name, bool norms_after) {
  for (const NamePair& pair : kTop) {
    if (name.starts_with(pair.module))
      return std::string(pair.gguf) + std::string(name.substr(pair.module.size()));
  }
  const auto [block, rest] = block_name(name);
  constexpr std::string_view kPost = "post_attention_layernorm.";
  if (rest.starts_with(kPost)) {
    return block + (norms_after ? "post_attention_norm." : "ffn_norm.") +
           std::string(rest.substr(kPost.size()));
  }
  for (const NamePair& pair : kInBlock) {
    if (rest.starts_with(pair.module))
      return block + std::string(pair.gguf) + std::string(rest.substr(pair.module.size()));
  }
  return std::string(name);
}

std::vector<StoredBlock> gguf_blocks(const ModelSpec& spec, std::string_view name) {
  for (const BlockSpec& each : spec.blocks) {
    const auto* moe = std::get_if<MoeSpec>(&each.feed_forward);
    if (!moe) continue;
    const std::string block = block_name(name).block;
    if (name == moe->up_name && moe->gated) return gate_and_up(*moe, block, spec.hidden, false);
    if (name == moe->up_bias && moe->gated) return gate_and_up(*moe, block, spec.hidden, true);
    if (name == moe->down_name)
      return {rows_of(block + "ffn_down_exps.weight", 0, 0, moe->experts * spec.hidden, moe->intermediate)};
    if (name == moe->down_bias)
      return {rows_of(block + "ffn_down_exps.bias", 0, 0, moe->experts, spec.hidden)};
  }
  return {};
}

void use_shifted_norms(ModelSpec& spec) {
  shift(spec.final_norm);
  for (BlockSpec& block : spec.blocks) {
    for (NormSpec* norm :
         {&block.mixer_norm, &block.mixer_post_norm, &block.feed_forward_norm, &block.feed_forward_post_norm})
      shift(*norm);
    if (auto* a = std::get_if<AttentionSpec>(&block.mixer)) shift(a->q_norm), shift(a->k_norm);
  }
}

}  // namespace tenon
