#include "models/gguf_names.h"

#include <fmt/format.h>

#include <span>

namespace tenon {
namespace {

struct NamePair {
  std::string_view module;
  std::string_view gguf;
};

constexpr NamePair kTop[] = {
    {"model.embed_tokens.", "token_embd."},
    {"model.norm.", "output_norm."},
    {"model.final_layernorm.", "output_norm."},
    {"model.embedding_norm.", "token_embd_norm."},  // LFM2's last norm goes by this name
    {"lm_head.", "output."},
    {"transformer.word_embeddings.", "token_embd."},
    {"transformer.ln_f.", "output_norm."},
    {"gpt_neox.embed_in.", "token_embd."},
    {"gpt_neox.final_layer_norm.", "output_norm."},
    {"embed_out.", "output."},
    {"backbone.embeddings.", "token_embd."},
    {"backbone.norm_f.", "output_norm."},
    {"model.embeddings.", "token_embd."},
    {"model.norm_f.", "output_norm."},
    {"transformer.wte.", "token_embd."},
    {"transformer.wpe.", "position_embd."},
    {"transformer.norm_f.", "output_norm."},
    {"transformer.word_embeddings_layernorm.", "token_embd_norm."},
    {"model.embed_tokens_per_layer.", "per_layer_token_embd."},
    {"model.per_layer_model_projection.", "per_layer_model_proj."},
    {"model.per_layer_projection_norm.", "per_layer_proj_norm."},
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
    {"mlp.gate.wg.", "ffn_gate_inp."},
    {"mlp.gate.", "ffn_gate_inp."},
    {"mlp.router.gate.", "ffn_gate_inp."},
    {"mlp.router.", "ffn_gate_inp."},
    {"block_sparse_moe.gate.", "ffn_gate_inp."},
    {"mlp.shared_experts.gate_proj.", "ffn_gate_shexp."},
    {"mlp.shared_experts.up_proj.", "ffn_up_shexp."},
    {"mlp.shared_experts.down_proj.", "ffn_down_shexp."},
    {"mlp.shared_expert.gate_proj.", "ffn_gate_shexp."},
    {"mlp.shared_expert.up_proj.", "ffn_up_shexp."},
    {"mlp.shared_expert.down_proj.", "ffn_down_shexp."},
    {"mlp.shared_expert_gate.", "ffn_gate_inp_shexp."},
    {"self_attn.q_a_proj.", "attn_q_a."},
    {"self_attn.q_a_layernorm.", "attn_q_a_norm."},
    {"self_attn.q_b_proj.", "attn_q_b."},
    {"self_attn.kv_a_proj_with_mqa.", "attn_kv_a_mqa."},
    {"self_attn.kv_a_layernorm.", "attn_kv_a_norm."},
    {"self_attn.kv_b_proj.", "attn_kv_b."},
    {"self_attn.dense.", "attn_output."},
    {"self_attn.out_proj.", "attn_output."},
    {"self_attn.q_layernorm.", "attn_q_norm."},
    {"self_attn.k_layernorm.", "attn_k_norm."},
    {"self_attention.query_key_value.", "attn_qkv."},
    {"self_attention.dense.", "attn_output."},
    {"attention.query_key_value.", "attn_qkv."},
    {"attention.dense.", "attn_output."},
    {"ln_mlp.", "attn_norm."},
    {"ln_attn.", "attn_norm_2."},
    {"operator_norm.", "attn_norm."},
    {"ffn_norm.", "ffn_norm."},
    {"pre_ff_layernorm.", "ffn_norm."},
    {"norm.", "attn_norm."},
    {"mlp.fc1.", "ffn_up."},
    {"mlp.fc2.", "ffn_down."},
    {"mlp.dense_h_to_4h.", "ffn_up."},
    {"mlp.dense_4h_to_h.", "ffn_down."},
    {"mlp.shared_mlp.gate_proj.", "ffn_gate_shexp."},
    {"mlp.shared_mlp.up_proj.", "ffn_up_shexp."},
    {"mlp.shared_mlp.down_proj.", "ffn_down_shexp."},
    {"mlp.e_score_correction_bias", "exp_probs_b.bias"},
    {"feed_forward.w1.", "ffn_gate."},
    {"feed_forward.w3.", "ffn_up."},
    {"feed_forward.w2.", "ffn_down."},
    {"feed_forward.gate_proj.", "ffn_gate."},
    {"feed_forward.up_proj.", "ffn_up."},
    {"feed_forward.down_proj.", "ffn_down."},
    {"feed_forward.gate.", "ffn_gate_inp."},
    {"feed_forward.router.", "ffn_gate_inp."},
    {"feed_forward.expert_bias", "exp_probs_b.bias"},
    {"feed_forward.shared_expert.gate_proj.", "ffn_gate_shexp."},
    {"feed_forward.shared_expert.up_proj.", "ffn_up_shexp."},
    {"feed_forward.shared_expert.down_proj.", "ffn_down_shexp."},
    {"block_sparse_moe.router.layer.", "ffn_gate_inp."},
    {"conv.in_proj.", "shortconv.in_proj."},
    {"conv.conv.", "shortconv.conv."},
    {"conv.out_proj.", "shortconv.out_proj."},
    {"linear_attn.in_proj_qkv.", "attn_qkv."},
    {"linear_attn.in_proj_z.", "attn_gate."},
    {"linear_attn.in_proj_b.", "ssm_beta."},
    {"linear_attn.in_proj_a.", "ssm_alpha."},
    {"linear_attn.in_proj_ba.", "ssm_ba."},
    {"linear_attn.conv1d.", "ssm_conv1d."},
    {"linear_attn.dt_bias", "ssm_dt.bias"},
    {"linear_attn.A_log", "ssm_a"},
    {"linear_attn.norm.", "ssm_norm."},
    {"linear_attn.out_proj.", "ssm_out."},
    {"attn.c_attn.", "attn_qkv."},
    {"attn.c_proj.", "attn_output."},
    {"attn.Wqkv.", "attn_qkv."},
    {"attn.out_proj.", "attn_output."},
    {"ffn.up_proj.", "ffn_up."},
    {"ffn.down_proj.", "ffn_down."},
    {"ffn.router.layer.", "ffn_gate_inp."},
    {"ln_1.", "attn_norm."},
    {"ln_2.", "ffn_norm."},
    {"norm_1.", "attn_norm."},
    {"norm_2.", "ffn_norm."},
    {"norm_attn_norm.norm_1.", "attn_norm."},
    {"norm_attn_norm.norm_2.", "attn_output_norm."},
    {"norm_attn_norm.attn.Wqkv.", "attn_qkv."},
    {"norm_attn_norm.attn.out_proj.", "attn_output."},
    {"self_attn.attn_sub_norm.", "attn_sub_norm."},
    {"mlp.ffn_sub_norm.", "ffn_sub_norm."},
    {"self_attn.gate_proj.", "attn_gate."},
    {"pre_mlp_layernorm.", "ffn_norm."},
    {"mlp.expert_bias", "exp_probs_b.bias"},
    {"attention_layernorm.", "attn_norm."},
    {"feedforward_layernorm.", "ffn_norm."},
    {"altup.correct_output_scale", "altup_correct_scale.weight"},
    {"altup.correction_coefs.", "altup_correct_coef."},
    {"altup.prediction_coefs.", "altup_predict_coef."},
    {"altup.modality_router.", "altup_router."},
    {"altup.router_norm.", "altup_router_norm."},
    {"laurel.linear_left.", "laurel_l."},
    {"laurel.linear_right.", "laurel_r."},
    {"laurel.post_laurel_norm.", "laurel_post_norm."},
    {"per_layer_input_gate.", "inp_gate."},
    {"per_layer_projection.", "proj."},
    {"post_per_layer_input_norm.", "post_norm."},
};

// After "mixer." or "mamba.": state-space layers, and all layers of Nemotron-H.
constexpr NamePair kInMixer[] = {
    {"in_proj.", "ssm_in."},
    {"conv1d.", "ssm_conv1d."},
    {"x_proj.", "ssm_x."},
    {"dt_proj.", "ssm_dt."},
    {"dt_bias", "ssm_dt.bias"},
    {"A_log", "ssm_a"},
    {"D", "ssm_d"},
    {"norm.", "ssm_norm."},
    {"dt_layernorm.", "ssm_dt_norm."},
    {"b_layernorm.", "ssm_b_norm."},
    {"c_layernorm.", "ssm_c_norm."},
    {"out_proj.", "ssm_out."},
    {"q_proj.", "attn_q."},
    {"k_proj.", "attn_k."},
    {"v_proj.", "attn_v."},
    {"o_proj.", "attn_output."},
    {"up_proj.", "ffn_up."},
    {"down_proj.", "ffn_down."},
    {"gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"gate.", "ffn_gate_inp."},
    {"shared_experts.up_proj.", "ffn_up_shexp."},
    {"shared_experts.down_proj.", "ffn_down_shexp."},
};

constexpr std::string_view kLayers[] = {"model.layers.", "backbone.layers.", "transformer.h.",
                                        "transformer.blocks.", "gpt_neox.layers."};

// `name` with the module that it begins with replaced; empty where none of the table fits.
std::string translated(std::span<const NamePair> table, std::string_view name) {
  for (const NamePair& pair : table) {
    if (name.starts_with(pair.module))
      return std::string(pair.gguf) + std::string(name.substr(pair.module.size()));
  }
  return {};
}

}  // namespace

GgufBlockName gguf_block_name(std::string_view name) {
  for (std::string_view layers : kLayers) {
    const size_t dot = name.starts_with(layers) ? name.find('.', layers.size()) : std::string_view::npos;
    if (dot == std::string_view::npos) continue;
    return {fmt::format("blk.{}.", name.substr(layers.size(), dot - layers.size())), name.substr(dot + 1)};
  }
  return {};
}

std::string gguf_tensor_name(std::string_view name, bool norms_after) {
  if (const std::string top = translated(kTop, name); !top.empty()) return top;
  const auto [block, rest] = gguf_block_name(name);
  constexpr std::string_view kPost = "post_attention_layernorm.";
  if (rest.starts_with(kPost)) {
    return block + (norms_after ? "post_attention_norm." : "ffn_norm.") +
           std::string(rest.substr(kPost.size()));
  }
  const bool mixer = rest.starts_with("mixer.") || rest.starts_with("mamba.");
  const std::string inner =
      mixer ? translated(kInMixer, rest.substr(rest.find('.') + 1)) : translated(kInBlock, rest);
  return inner.empty() ? std::string(name) : block + inner;
}

bool gguf_holds_negative_exp(std::string_view tensor) {
  return tensor.starts_with("blk.") && tensor.ends_with(".ssm_a");
}

}  // namespace tenon
