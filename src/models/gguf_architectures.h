// What is particular to the metadata of a GGUF architecture beside the family that reads it
// (models/family.h): where it differs from config.json. Names and keys are those of the Python package
// `gguf`; tools/make_gguf_names.py takes them from there for the test.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tenon {

// A number, a flag or a string: `gguf` after "<architecture>.", and the key of config.json, after a dot where
// it lies in an object.
struct GgufKey {
  std::string_view gguf;
  std::string_view config;
};

// A key of config.json that a tensor's being there decides; values are JSON.
struct GgufSign {
  std::string_view config;
  std::string_view tensor;
  std::string_view present = "true";
  std::string_view absent = "false";
};

// A key by another name than most configurations have for it.
struct GgufRename {
  std::string_view from, to;
};

// What kinds of layers there are, by blocks that have heads of keys: a list of names, or Jamba's period.
// `feeds`: names blocks that have no mixer but a feed-forward; empty: all have both.
struct GgufLayerKinds {
  std::string_view config;  // empty: layers are of one kind
  std::string_view attends;
  std::string_view other;
  std::string_view feeds = {};
};

// Values of expert_gating_func.
enum class GgufGating : uint8_t { softmax = 1, sigmoid = 2, softmax_of_chosen = 3 };

struct GgufArchitecture {
  std::string_view name;       // general.architecture
  bool shifted_norms = false;  // weights of zero-centred norms have the 1 added
  bool norms_after = false;    // post_attention_layernorm is the norm after attention, or goes by its name
  bool layer_norm = false;     // the key of epsilon is that of LayerNorm
  std::string_view eps_key = "rms_norm_eps";
  bool rope = true;
  bool tiled_values = false;             // heads of values in a delta rule come key by key
  bool latent = false;                   // heads have the sizes of latent attention
  int64_t full_every = 0;                // > 0: where there is a window, each so many-th layer is without it
  std::string_view bias_key = {};        // set by whether q has a bias; empty: not asked for
  std::string_view query_norm_key = {};  // set by whether q is normalised; empty: not asked for
  std::span<const GgufKey> keys = {};
  std::span<const GgufSign> signs = {};
  std::span<const GgufRename> renames = {};
  GgufLayerKinds layers = {};
  std::string_view state_head_key = {};  // of the width of a head of Mamba-2; empty: none
  std::string_view implied = "{}";       // keys of config.json that the architecture implies
  std::string_view model_type = {};      // with experts, where that is another family
  GgufGating gating = GgufGating::softmax;
};

// Of an architecture without particulars, what most have.
GgufArchitecture gguf_architecture(std::string_view name);

}  // namespace tenon
