// Names of tensors: those of modules, as transformers has them, to those of GGUF.
#pragma once

#include <string>
#include <string_view>

namespace tenon {

// "blk.3." and "self_attn.q_proj.weight" of a name in block 3; nothing of others.
struct GgufBlockName {
  std::string block;
  std::string_view rest;
};
GgufBlockName gguf_block_name(std::string_view name);

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight". A name without a counterpart stays as it
// is. `norms_after`: GgufArchitecture::norms_after.
std::string gguf_tensor_name(std::string_view name, bool norms_after = false);

// Whether a tensor holds -exp(x) of the x that the model has: the decay of state-space layers. Gradients are
// those of x.
bool gguf_holds_negative_exp(std::string_view tensor);

}  // namespace tenon
