#include "models/gguf_config.h"

#include <fmt/format.h>

#include <vector>

#include "base/json.h"
#include "io/dequantise.h"
#include "models/family.h"

namespace tenon {
namespace {

struct IntegerKey {
  std::string_view gguf;  // after the architecture and a dot
  std::string_view config;
  bool required;
};

constexpr IntegerKey kIntegerKeys[] = {
    {"block_count", "num_hidden_layers", true},
    {"embedding_length", "hidden_size", true},
    {"feed_forward_length", "intermediate_size", true},
    {"attention.head_count", "num_attention_heads", true},
    {"attention.head_count_kv", "num_key_value_heads", false},
    {"attention.key_length", "head_dim", false},
    {"attention.sliding_window", "sliding_window", false},
    {"context_length", "max_position_embeddings", false},
};

Status read_rope_keys(const Checkpoint& checkpoint, const std::string& prefix, Json& config) {
  const GgufFile& gguf = checkpoint.gguf();
  Json rope = Json::object();
  rope["rope_theta"] = 10000.0;
  if (const GgufValue* base = gguf.find(prefix + "rope.freq_base"))
    rope["rope_theta"] = base->number().value_or(0);
  if (const GgufValue* kind = gguf.find(prefix + "rope.scaling.type")) {
    const std::string_view name = kind->string().value_or("");
    if (name != "none") {
      rope["rope_type"] = std::string(name);
      ASSIGN_OR_RETURN(rope["factor"], gguf.number(prefix + "rope.scaling.factor"));
    }
  }
  if (const CheckpointTensor* tensor = checkpoint.find("rope_freqs.weight")) {
    std::vector<float> factors(static_cast<size_t>(tensor->shape.elements()));
    if (!can_dequantise(tensor->dtype)) return bad_file("the rope factors are not numbers", tensor->name);
    dequantise_row(tensor->dtype, checkpoint.bytes(*tensor).data(), factors.data(), tensor->shape.elements());
    rope["rope_type"] = "factors";
    rope["factors"] = factors;
  }
  config["rope_parameters"] = std::move(rope);
  return {};
}

}  // namespace

Result<Json> gguf_config(const Checkpoint& checkpoint) {
  const GgufFile& gguf = checkpoint.gguf();
  ASSIGN_OR_RETURN(const std::string_view architecture, gguf.string("general.architecture"));
  if (!find_gguf_layout(architecture)) {
    std::string known;
    for (const Family* family : all_families()) {
      for (const GgufLayout& layout : family->gguf) {
        known += fmt::format("{}{}", known.empty() ? "" : ", ", layout.architecture);
      }
    }
    return unsupported(fmt::format("the GGUF architecture '{}' is not supported", architecture),
                       checkpoint.path(), fmt::format("Supported: {}.", known));
  }
  const std::string prefix = std::string(architecture) + ".";
  Json config = Json::object();
  config["model_type"] = std::string(architecture);
  for (const IntegerKey& key : kIntegerKeys) {
    const std::string name = prefix + std::string(key.gguf);
    if (!key.required && !gguf.find(name)) continue;
    ASSIGN_OR_RETURN(config[std::string(key.config)], gguf.integer(name));
  }
  ASSIGN_OR_RETURN(config["rms_norm_eps"], gguf.number(prefix + "attention.layer_norm_rms_epsilon"));
  RETURN_IF_ERROR(read_rope_keys(checkpoint, prefix, config));
  ASSIGN_OR_RETURN(const CheckpointTensor* embedding, checkpoint.require("token_embd.weight"));
  config["vocab_size"] = embedding->shape.rank() == 2 ? embedding->shape[0] : 0;
  config["tie_word_embeddings"] = checkpoint.find("output.weight") == nullptr;
  return config;
}

Result<Json> checkpoint_config(const Checkpoint& checkpoint) {
  if (checkpoint.format() == CheckpointFormat::gguf) return gguf_config(checkpoint);
  return checkpoint.config();
}

}  // namespace tenon
