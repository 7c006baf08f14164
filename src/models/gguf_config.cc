#include "models/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/json.h"
#include "io/dequantise.h"
#include "models/family.h"
#include "models/gguf_layouts.h"

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

Json value_of(const GgufValue& value) {
  if (const auto flag = value.boolean()) return *flag;
  if (const auto integer = value.integer()) return *integer;
  if (const auto number = value.number()) return *number;
  return std::string(value.string().value_or(""));
}

Result<std::vector<float>> floats_of(const Checkpoint& checkpoint, const CheckpointTensor& tensor) {
  if (!can_dequantise(tensor.dtype)) return bad_file("the rope factors are not numbers", tensor.name);
  std::vector<float> out(static_cast<size_t>(tensor.shape.elements()));
  dequantise_row(tensor.dtype, checkpoint.bytes(tensor).data(), out.data(), tensor.shape.elements());
  return out;
}

// Longrope's factors are tensors, and its length and amplitude keys.
Status read_longrope(const Checkpoint& checkpoint, const std::string& prefix, Json& rope) {
  const CheckpointTensor* far = checkpoint.find("rope_factors_long.weight");
  const CheckpointTensor* near = checkpoint.find("rope_factors_short.weight");
  if (!far || !near) return {};
  const GgufFile& gguf = checkpoint.gguf();
  rope["rope_type"] = "longrope";
  ASSIGN_OR_RETURN(rope["long_factor"], floats_of(checkpoint, *far));
  ASSIGN_OR_RETURN(rope["short_factor"], floats_of(checkpoint, *near));
  ASSIGN_OR_RETURN(rope["original_max_position_embeddings"],
                   gguf.integer(prefix + "rope.scaling.original_context_length"));
  ASSIGN_OR_RETURN(rope["attention_factor"], gguf.number(prefix + "rope.scaling.attn_factor"));
  return {};
}

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
      if (const GgufValue* from = gguf.find(prefix + "rope.scaling.original_context_length"))
        rope["original_max_position_embeddings"] = from->integer().value_or(0);
    }
  }
  if (const CheckpointTensor* tensor = checkpoint.find("rope_freqs.weight")) {
    rope["rope_type"] = "factors";
    ASSIGN_OR_RETURN(rope["factors"], floats_of(checkpoint, *tensor));
  }
  RETURN_IF_ERROR(read_longrope(checkpoint, prefix, rope));
  config["rope_parameters"] = std::move(rope);
  return {};
}

// The part of a head that is rotated, where it is not all of it.
void read_rotary(const GgufFile& gguf, const std::string& prefix, Json& config) {
  const GgufValue* rotated = gguf.find(prefix + "rope.dimension_count");
  if (!rotated || !rotated->integer()) return;
  const int64_t heads = config["num_attention_heads"].get<int64_t>(),
                hidden = config["hidden_size"].get<int64_t>();
  const int64_t head_dim = config.value("head_dim", heads > 0 ? hidden / heads : 0);
  if (head_dim <= 0 || *rotated->integer() == head_dim) return;
  config["partial_rotary_factor"] = static_cast<double>(*rotated->integer()) / static_cast<double>(head_dim);
}

// Scores of Gemma 2 and 3 are scaled by the head's size but for the largest of each, by llama.cpp's rule.
void read_query_scale(std::string_view architecture, Json& config) {
  const int64_t layers = config["num_hidden_layers"].get<int64_t>(),
                heads = config["num_attention_heads"].get<int64_t>();
  const bool largest =
      (architecture == "gemma2" && layers == 46) || (architecture == "gemma3" && layers == 62);
  if (architecture != "gemma2" && architecture != "gemma3") return;
  config["query_pre_attn_scalar"] = largest && heads > 0 ? config["hidden_size"].get<int64_t>() / heads
                                                         : config.value("head_dim", int64_t{256});
}

// Members of objects, one by one; other values replace those of the same key.
void take_over(const Json& from, Json& into) {
  for (const Json::Member& member : from.items()) {
    Json& to = into[member.key];
    if (member.value.is_object() && to.is_object()) {
      take_over(member.value, to);
    } else {
      to = member.value;
    }
  }
}

// GGUF counts the layers that predict further tokens among the blocks, config.json does not.
void leave_out_next_token_layers(Json& config) {
  const int64_t layers = config["num_hidden_layers"].get<int64_t>();
  const Json& further = config["num_nextn_predict_layers"];
  if (further.is_number_integer() && further.get<int64_t>() >= 0 && further.get<int64_t>() < layers)
    config["num_hidden_layers"] = layers - further.get<int64_t>();
}

void read_particulars(const Checkpoint& checkpoint, const std::string& prefix, const GgufArchitecture& kind,
                      Json& config) {
  const GgufFile& gguf = checkpoint.gguf();
  const auto experts = gguf.find(prefix + "expert_count");
  const bool has_experts = experts && experts->integer().value_or(0) > 0;
  const Json implied = Json::parse(kind.implied);
  if (implied.contains("rope_parameters") && implied["rope_parameters"].contains("sliding_attention"))
    config["rope_parameters"] = Json{{"full_attention", config["rope_parameters"]}};
  take_over(implied, config);
  for (const GgufKey& key : kind.keys) {
    const bool of_experts = key.gguf.starts_with("expert_");
    const GgufValue* value = gguf.find(prefix + std::string(key.gguf));
    if (value && (has_experts || !of_experts)) config[std::string(key.config)] = value_of(*value);
  }
  if (has_experts && !kind.model_type.empty()) config["model_type"] = std::string(kind.model_type);
  leave_out_next_token_layers(config);
  const int64_t layers = config["num_hidden_layers"].get<int64_t>();
  const bool windowed = kind.full_every > 0 && config.contains("sliding_window");
  for (int64_t i = 0; windowed && i < std::min<int64_t>(layers, 10000); ++i)
    config["layer_types"].push_back((i + 1) % kind.full_every == 0 ? "full_attention" : "sliding_attention");
  if (!kind.bias_key.empty())
    config[std::string(kind.bias_key)] = checkpoint.find("blk.0.attn_q.bias") != nullptr;
  if (!kind.query_norm_key.empty())
    config[std::string(kind.query_norm_key)] = checkpoint.find("blk.0.attn_q_norm.weight") != nullptr;
}

// The model_type of the family that reads an architecture.
std::string gguf_model_type(std::string_view architecture) {
  for (const Family* family : all_families()) {
    for (const GgufLayout& layout : family->gguf) {
      if (layout.architecture == architecture) return std::string(family->model_types[0]);
    }
  }
  return std::string(architecture);
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
  const GgufArchitecture kind = gguf_architecture(architecture);
  config["model_type"] = gguf_model_type(architecture);
  config["architectures"] = Json::array({std::string(architecture)});
  for (const IntegerKey& key : kIntegerKeys) {
    const std::string name = prefix + std::string(key.gguf);
    if (!key.required && !gguf.find(name)) continue;
    ASSIGN_OR_RETURN(config[std::string(key.config)], gguf.integer(name));
  }
  if (!kind.eps_key.empty()) {
    const std::string key =
        prefix + (kind.layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon");
    ASSIGN_OR_RETURN(config[std::string(kind.eps_key)], gguf.number(key));
  }
  read_rotary(gguf, prefix, config);
  read_query_scale(architecture, config);
  RETURN_IF_ERROR(read_rope_keys(checkpoint, prefix, config));
  read_particulars(checkpoint, prefix, kind, config);
  ASSIGN_OR_RETURN(const CheckpointTensor* embedding, checkpoint.require("token_embd.weight"));
  config["vocab_size"] = embedding->shape.rank() == 2 ? embedding->shape[0] : 0;
  config["tie_word_embeddings"] = checkpoint.find("output.weight") == nullptr;
  return config;
}

Result<ModelSpec> checkpoint_spec(const Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const Json config, checkpoint_config(checkpoint));
  const bool gguf = checkpoint.format() == CheckpointFormat::gguf;
  ASSIGN_OR_RETURN(ModelSpec spec,
                   read_model_spec(config, gguf ? checkpoint.path() : checkpoint.path() + "/config.json"));
  if (gguf && gguf_architecture(spec.architecture).shifted_norms) use_shifted_norms(spec);
  return spec;
}

Result<Json> checkpoint_config(const Checkpoint& checkpoint) {
  if (checkpoint.format() == CheckpointFormat::gguf) return gguf_config(checkpoint);
  return checkpoint.config();
}

}  // namespace tenon
