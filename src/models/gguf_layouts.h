// What is particular to a GGUF architecture beside the family that reads it (models/family.h): where its
// metadata differs from config.json, and what llama.cpp's converter does to the weights. Names and keys are
// those of the Python package `gguf`; tools/make_gguf_names.py takes them from there for the test.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/model_spec.h"

namespace tenon {

// A number, a flag or a string: `gguf` after "<architecture>.", and the key of config.json.
struct GgufKey {
  std::string_view gguf;
  std::string_view config;
};

struct GgufArchitecture {
  std::string_view name;       // general.architecture
  bool shifted_norms = false;  // weights of zero-centred norms have the 1 added
  bool norms_after = false;    // post_attention_layernorm is the norm after attention, or goes by its name
  bool layer_norm = false;     // the key of epsilon is that of LayerNorm
  std::string_view eps_key = "rms_norm_eps";
  int64_t full_every = 0;                // > 0: where there is a window, each so many-th layer is without it
  std::string_view bias_key = {};        // set by whether q has a bias; empty: not asked for
  std::string_view query_norm_key = {};  // set by whether q is normalised; empty: not asked for
  std::span<const GgufKey> keys = {};
  std::string_view implied = "{}";   // keys of config.json that the architecture implies
  std::string_view model_type = {};  // with experts, where that is another family
};

// Of an architecture without particulars, what most have.
GgufArchitecture gguf_architecture(std::string_view name);

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight". A name without a counterpart stays as it
// is.
std::string gguf_tensor_name(std::string_view name, bool norms_after = false);

// Where a weight lies in a GGUF file, if not in one tensor of its name: experts, whose gate and up are
// tensors of their own. Empty: in one tensor.
std::vector<StoredBlock> gguf_blocks(const ModelSpec& spec, std::string_view name);

// Takes the 1 back out of the norms' offsets where the file has it in the weights.
void use_shifted_norms(ModelSpec& spec);

}  // namespace tenon
