// Tensor names as GGUF files call them (ggml/docs/gguf.md, "Standardized tensor names").
#pragma once

#include <string>
#include <string_view>

namespace tenon {

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight". A name without a counterpart stays as it
// is.
std::string gguf_tensor_name(std::string_view name);

}  // namespace tenon
