// What GGUF metadata says in other ways than config.json does, and keys that would change the arithmetic and
// are not read. For gguf_config.cc.
#pragma once

#include <string>

#include "base/error.h"
#include "base/json.h"
#include "io/checkpoint.h"
#include "models/gguf_architectures.h"

namespace tenon {

// `config` so far has num_hidden_layers and the sizes that all architectures share; `prefix` is
// "<architecture>.".
struct GgufMetadata {
  const Checkpoint& checkpoint;
  const GgufArchitecture& kind;
  std::string prefix;

  const GgufValue* find(std::string_view key) const {
    return checkpoint.gguf().find(prefix + std::string(key));
  }
  bool has_experts() const;
};

// A size that layers share. Lists have it for each layer, with 0 where a layer has none; 0 where no layer has
// any. Errors: not_found, bad_file, unsupported (layers that differ).
Result<int64_t> gguf_shared_size(const GgufMetadata& metadata, std::string_view key);

// Sizes of latent attention in place of head_dim: rope.dimension_count is the rotated part of a head.
Status set_latent_sizes(const GgufMetadata& metadata, Json& config);

// Names of the kinds of layers, or Jamba's periods, by which layers have heads of keys and a feed-forward.
Status set_layer_kinds(const GgufMetadata& metadata, Json& config);

// Layers with and without the window, where the file lists them or the architecture implies it.
void set_windowed_layers(const GgufMetadata& metadata, Json& config);

// What single architectures need beside tables: DeepSeek's routers, Llama 4's layers, Granite's positions.
Status set_exceptions(const GgufMetadata& metadata, Json& config);

// Errors: unsupported, naming a key of the architecture that is not read and not known to be harmless.
Status refuse_unread_keys(const GgufMetadata& metadata);

}  // namespace tenon
