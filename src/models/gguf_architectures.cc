#include "models/gguf_architectures.h"

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
                                    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
                                    {"expert_weights_norm", "norm_topk_prob"}};
constexpr GgufKey kMixtralKeys[] = {{"expert_count", "num_local_experts"},
                                    {"expert_used_count", "num_experts_per_tok"}};
constexpr GgufKey kGptOssKeys[] = {{"expert_count", "num_local_experts"},
                                   {"expert_used_count", "num_experts_per_tok"},
                                   {"expert_feed_forward_length", "intermediate_size"}};
constexpr GgufKey kOlmoeKeys[] = {{"expert_count", "num_experts"},
                                  {"expert_used_count", "num_experts_per_tok"},
                                  {"expert_weights_norm", "norm_topk_prob"}};
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
constexpr GgufKey kDeepseekKeys[] = {{"attention.q_lora_rank", "q_lora_rank"},
                                     {"attention.kv_lora_rank", "kv_lora_rank"},
                                     {"expert_count", "n_routed_experts"},
                                     {"expert_used_count", "num_experts_per_tok"},
                                     {"expert_feed_forward_length", "moe_intermediate_size"},
                                     {"expert_shared_count", "n_shared_experts"},
                                     {"expert_weights_scale", "routed_scaling_factor"},
                                     {"expert_weights_norm", "norm_topk_prob"},
                                     {"expert_group_count", "n_group"},
                                     {"expert_group_used_count", "topk_group"},
                                     {"leading_dense_block_count", "first_k_dense_replace"},
                                     {"nextn_predict_layers", "num_nextn_predict_layers"}};
constexpr GgufKey kLatentKeys[] = {{"attention.q_lora_rank", "q_lora_rank"},
                                   {"attention.kv_lora_rank", "kv_lora_rank"}};
constexpr GgufKey kFalconKeys[] = {{"attention.head_count_kv", "num_kv_heads"},
                                   {"feed_forward_length", "ffn_hidden_size"}};
constexpr GgufSign kFalconSigns[] = {{"num_ln_in_parallel_attn", "attn_norm_2.weight", "2", "1"},
                                     {"bias", "attn_qkv.bias"}};
constexpr GgufKey kLfmKeys[] = {{"shortconv.l_cache", "conv_L_cache"}};
constexpr GgufKey kLfmMoeKeys[] = {{"shortconv.l_cache", "conv_L_cache"},
                                   {"expert_count", "num_experts"},
                                   {"expert_used_count", "num_experts_per_tok"},
                                   {"expert_feed_forward_length", "moe_intermediate_size"},
                                   {"expert_weights_scale", "routed_scaling_factor"},
                                   {"expert_weights_norm", "norm_topk_prob"},
                                   {"leading_dense_block_count", "num_dense_layers"}};
constexpr GgufKey kMambaKeys[] = {{"ssm.conv_kernel", "conv_kernel"},
                                  {"ssm.inner_size", "intermediate_size"},
                                  {"ssm.state_size", "state_size"},
                                  {"ssm.time_step_rank", "time_step_rank"}};
constexpr GgufKey kMamba2Keys[] = {{"ssm.conv_kernel", "conv_kernel"},
                                   {"ssm.state_size", "state_size"},
                                   {"ssm.time_step_rank", "num_heads"},
                                   {"ssm.group_count", "n_groups"}};
constexpr GgufKey kJambaKeys[] = {{"ssm.conv_kernel", "mamba_d_conv"},
                                  {"ssm.state_size", "mamba_d_state"},
                                  {"ssm.time_step_rank", "mamba_dt_rank"},
                                  {"expert_count", "num_experts"},
                                  {"expert_used_count", "num_experts_per_tok"}};
constexpr GgufKey kNemotronHKeys[] = {
    {"ssm.conv_kernel", "conv_kernel"},
    {"ssm.state_size", "ssm_state_size"},
    {"ssm.time_step_rank", "mamba_num_heads"},
    {"ssm.group_count", "n_groups"},
    {"expert_count", "n_routed_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size"},
    {"expert_shared_count", "n_shared_experts"},
    {"expert_weights_scale", "routed_scaling_factor"},
    {"expert_weights_norm", "norm_topk_prob"},
    {"expert_group_count", "n_group"},
    {"expert_group_used_count", "topk_group"},
    {"nextn_predict_layers", "num_nextn_predict_layers"}};
constexpr GgufKey kFalconH1Keys[] = {{"ssm.conv_kernel", "mamba_d_conv"},
                                     {"ssm.state_size", "mamba_d_state"},
                                     {"ssm.time_step_rank", "mamba_n_heads"},
                                     {"ssm.group_count", "mamba_n_groups"}};
constexpr GgufSign kFalconH1Signs[] = {{"mamba_rms_norm", "ssm_norm.weight"}};
constexpr GgufKey kGraniteMoeKeys[] = {{"embedding_scale", "embedding_multiplier"},
                                       {"residual_scale", "residual_multiplier"},
                                       {"attention.scale", "attention_multiplier"},
                                       {"logit_scale", "logits_scaling"},
                                       {"expert_count", "num_local_experts"},
                                       {"expert_used_count", "num_experts_per_tok"},
                                       {"expert_shared_feed_forward_length", "shared_intermediate_size"}};
constexpr GgufKey kGraniteHybridKeys[] = {{"embedding_scale", "embedding_multiplier"},
                                          {"residual_scale", "residual_multiplier"},
                                          {"attention.scale", "attention_multiplier"},
                                          {"logit_scale", "logits_scaling"},
                                          {"expert_count", "num_local_experts"},
                                          {"expert_used_count", "num_experts_per_tok"},
                                          {"expert_shared_feed_forward_length", "shared_intermediate_size"},
                                          {"ssm.conv_kernel", "mamba_d_conv"},
                                          {"ssm.state_size", "mamba_d_state"},
                                          {"ssm.time_step_rank", "mamba_n_heads"},
                                          {"ssm.group_count", "mamba_n_groups"}};
constexpr GgufKey kLlama4Keys[] = {{"feed_forward_length", "intermediate_size_mlp"},
                                   {"expert_feed_forward_length", "intermediate_size"},
                                   {"expert_count", "num_local_experts"},
                                   {"expert_used_count", "num_experts_per_tok"},
                                   {"interleave_moe_layer_step", "interleave_moe_layer_step"}};
constexpr GgufKey kHunyuanMoeKeys[] = {{"expert_count", "num_experts"},
                                       {"expert_used_count", "moe_topk"},
                                       {"expert_feed_forward_length", "intermediate_size"}};
constexpr GgufKey kMinimaxKeys[] = {{"expert_count", "num_local_experts"},
                                    {"expert_used_count", "num_experts_per_tok"},
                                    {"expert_feed_forward_length", "intermediate_size"}};

// As llama.cpp's convert_hf_to_gguf.py writes them; keys that it leaves out are implied.
constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama", .keys = kMixtralKeys, .model_type = "mixtral"},
    {.name = "qwen2moe", .keys = kQwenMoeKeys, .implied = R"({"norm_topk_prob":false})"},
    {.name = "qwen3moe", .keys = kQwenMoeKeys, .implied = R"({"norm_topk_prob":true})"},
    {.name = "olmoe", .keys = kOlmoeKeys, .implied = R"({"norm_topk_prob":false})"},
    {.name = "ernie4_5-moe", .keys = kErnieMoeKeys},
    {.name = "dots1",
     .keys = kRoutedKeys,
     .implied = R"({"n_group":1,"topk_group":1})",
     .gating = GgufGating::sigmoid},
    {.name = "glm4moe",
     .norms_after = true,
     .bias_key = "attention_bias",
     .query_norm_key = "use_qk_norm",
     .keys = kRoutedKeys,
     .implied = R"({"n_group":1,"topk_group":1})",
     .gating = GgufGating::sigmoid},
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
     .implied = R"({"rope_parameters":{"truncate":false}})",
     .gating = GgufGating::softmax_of_chosen},
    {.name = "deepseek2", .latent = true, .keys = kDeepseekKeys, .model_type = "deepseek_v2"},
    {.name = "minicpm3",
     .latent = true,
     .keys = kLatentKeys,
     .implied = R"({"scale_emb":12,"scale_depth":1.4,"dim_model_base":256})"},
    {.name = "phi2", .layer_norm = true, .eps_key = "layer_norm_eps"},
    {.name = "gptneox", .layer_norm = true, .eps_key = "layer_norm_eps", .keys = kStableLmKeys},
    {.name = "falcon",
     .layer_norm = true,
     .eps_key = "layer_norm_epsilon",
     .keys = kFalconKeys,
     .signs = kFalconSigns,
     .implied = R"({"new_decoder_architecture":true})"},
    {.name = "lfm2",
     .eps_key = "norm_eps",
     .keys = kLfmKeys,
     .layers = {"layer_types", "full_attention", "conv"},
     .implied = R"({"block_auto_adjust_ff_dim":false})"},
    {.name = "lfm2moe",
     .eps_key = "norm_eps",
     .keys = kLfmMoeKeys,
     .layers = {"layer_types", "full_attention", "conv"},
     .implied = R"({"norm_topk_prob":true})",
     .gating = GgufGating::sigmoid},
    {.name = "mamba", .eps_key = "layer_norm_epsilon", .rope = false, .keys = kMambaKeys},
    {.name = "mamba2",
     .eps_key = "layer_norm_epsilon",
     .rope = false,
     .keys = kMamba2Keys,
     .state_head_key = "head_dim"},
    {.name = "jamba", .rope = false, .keys = kJambaKeys, .layers = {"attn_layer", "full_attention", "mamba"}},
    {.name = "nemotron_h",
     .eps_key = "layer_norm_epsilon",
     .rope = false,
     .keys = kNemotronHKeys,
     .layers = {"layers_block_type", "full_attention", "linear_attention", "mlp"},
     .state_head_key = "mamba_head_dim",
     .implied = R"({"n_routed_experts":1,"num_experts_per_tok":1,"moe_intermediate_size":1})"},
    {.name = "nemotron_h_moe",
     .eps_key = "layer_norm_epsilon",
     .rope = false,
     .keys = kNemotronHKeys,
     .layers = {"layers_block_type", "full_attention", "linear_attention", "moe"},
     .state_head_key = "mamba_head_dim",
     .gating = GgufGating::sigmoid},
    {.name = "falcon-h1",
     .keys = kFalconH1Keys,
     .signs = kFalconH1Signs,
     .state_head_key = "mamba_d_head",
     .implied = R"({"mamba_norm_before_gate":false})"},
    {.name = "granitemoe", .keys = kGraniteMoeKeys},
    {.name = "granitehybrid",
     .keys = kGraniteHybridKeys,
     .layers = {"layer_types", "attention", "mamba"},
     .state_head_key = "mamba_d_head"},
    {.name = "llama4", .keys = kLlama4Keys, .gating = GgufGating::sigmoid},
    {.name = "hunyuan-moe", .keys = kHunyuanMoeKeys},
    {.name = "minimax-m2", .keys = kMinimaxKeys, .gating = GgufGating::sigmoid},
};

}  // namespace

GgufArchitecture gguf_architecture(std::string_view name) {
  for (const GgufArchitecture& each : kArchitectures) {
    if (each.name == name) return each;
  }
  return {.name = name};
}

}  // namespace tenon
