#include "models/gguf_names.h"

namespace tenon {
namespace {

struct NamePair {
  std::string_view module;
  std::string_view gguf;
};

constexpr NamePair kTop[] = {
    {"model.embed_tokens.", "token_embd."},
    {"model.norm.", "output_norm."},
    {"lm_head.", "output."},
};

constexpr NamePair kInBlock[] = {
    {"self_attn.q_proj.", "attn_q."},      {"self_attn.k_proj.", "attn_k."},
    {"self_attn.v_proj.", "attn_v."},      {"self_attn.o_proj.", "attn_output."},
    {"self_attn.q_norm.", "attn_q_norm."}, {"self_attn.k_norm.", "attn_k_norm."},
    {"input_layernorm.", "attn_norm."},    {"post_attention_layernorm.", "ffn_norm."},
    {"mlp.gate_proj.", "ffn_gate."},       {"mlp.up_proj.", "ffn_up."},
    {"mlp.down_proj.", "ffn_down."},
};

constexpr std::string_view kLayers = "model.layers.";

}  // namespace

std::string gguf_tensor_name(std::string_view name) {
  for (const NamePair& pair : kTop) {
    if (name.starts_with(pair.module))
      return std::string(pair.gguf) + std::string(name.substr(pair.module.size()));
  }
  if (!name.starts_with(kLayers)) return std::string(name);
  const size_t dot = name.find('.', kLayers.size());
  if (dot == std::string_view::npos) return std::string(name);
  const std::string_view layer = name.substr(kLayers.size(), dot - kLayers.size());
  const std::string_view rest = name.substr(dot + 1);
  for (const NamePair& pair : kInBlock) {
    if (!rest.starts_with(pair.module)) continue;
    return "blk." + std::string(layer) + "." + std::string(pair.gguf) +
           std::string(rest.substr(pair.module.size()));
  }
  return std::string(name);
}

}  // namespace tenon
