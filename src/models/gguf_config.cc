#include "models/gguf_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/json.h"
#include "io/dequantise.h"
#include "models/family.h"
#include "models/gguf_architectures.h"
#include "models/gguf_layouts.h"
#include "models/gguf_particulars.h"

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

// YaRN's keys beside the factor. DeepSeek's scores carry the amplitude, which is that of all dimensions, and
// rope itself has none; the multiplier is a tenth of it.
Status read_yarn(const GgufMetadata& metadata, Json& rope) {
  for (const char* key : {"beta_fast", "beta_slow"}) {
    if (const GgufValue* value = metadata.find(std::string("rope.scaling.yarn_") + key))
      rope[key] = value->number().value_or(0);
  }
  if (!metadata.kind.latent) return {};
  rope["attention_factor"] = 1.0;
  if (const GgufValue* multiplier = metadata.find("rope.scaling.yarn_log_multiplier"))
    rope["mscale_all_dim"] = 10 * multiplier->number().value_or(0);
  return {};
}

Status read_rope_keys(const GgufMetadata& metadata, Json& config) {
  const auto& [checkpoint, kind, prefix] = metadata;
  const GgufFile& gguf = checkpoint.gguf();
  Json rope = Json::object();
  rope["rope_theta"] = 10000.0;
  if (const GgufValue* base = gguf.find(prefix + "rope.freq_base"))
    rope["rope_theta"] = base->number().value_or(0);
  if (const GgufValue* type = gguf.find(prefix + "rope.scaling.type")) {
    const std::string_view name = type->string().value_or("");
    if (name != "none") {
      rope["rope_type"] = std::string(name);
      ASSIGN_OR_RETURN(rope["factor"], gguf.number(prefix + "rope.scaling.factor"));
      if (const GgufValue* from = gguf.find(prefix + "rope.scaling.original_context_length"))
        rope["original_max_position_embeddings"] = from->integer().value_or(0);
      if (name == "yarn") RETURN_IF_ERROR(read_yarn(metadata, rope));
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

// The part of a head that is rotated.
void read_rotary(const GgufFile& gguf, const std::string& prefix, Json& config) {
  const GgufValue* rotated = gguf.find(prefix + "rope.dimension_count");
  if (!rotated || !rotated->integer()) return;
  const int64_t heads = config.value("num_attention_heads", int64_t{0}),
                hidden = config["hidden_size"].get<int64_t>();
  const int64_t head_dim = config.value("head_dim", heads > 0 ? hidden / heads : 0);
  if (head_dim <= 0) return;
  config["partial_rotary_factor"] = static_cast<double>(*rotated->integer()) / static_cast<double>(head_dim);
}

// Scores of Gemma 2 and 3 are scaled by the head's size but for the largest of each, by llama.cpp's rule.
void read_query_scale(std::string_view architecture, Json& config) {
  const int64_t layers = config["num_hidden_layers"].get<int64_t>(),
                heads = config.value("num_attention_heads", int64_t{0});
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

// The value of a key, or of one in an object after a dot.
Json& key_of(Json& config, std::string_view key) {
  const size_t dot = key.find('.');
  if (dot == std::string_view::npos) return config[std::string(key)];
  return config[std::string(key.substr(0, dot))][std::string(key.substr(dot + 1))];
}

void rename_keys(std::span<const GgufRename> renames, Json& config) {
  for (const GgufRename& each : renames) {
    const std::string from(each.from);
    if (!config.contains(from)) continue;
    config[std::string(each.to)] = config[from];
    config.erase(from);
  }
}

// GGUF counts the layers that predict further tokens among the blocks, config.json does not.
void leave_out_next_token_layers(Json& config) {
  const int64_t layers = config["num_hidden_layers"].get<int64_t>();
  const Json& further = config["num_nextn_predict_layers"];
  if (further.is_number_integer() && further.get<int64_t>() >= 0 && further.get<int64_t>() < layers)
    config["num_hidden_layers"] = layers - further.get<int64_t>();
}

void read_particulars(const GgufMetadata& metadata, Json& config) {
  const GgufArchitecture& kind = metadata.kind;
  const bool has_experts = metadata.has_experts();
  const Json implied = Json::parse(kind.implied);
  if (implied.contains("rope_parameters") && implied["rope_parameters"].contains("sliding_attention"))
    config["rope_parameters"] = Json{{"full_attention", config["rope_parameters"]}};
  take_over(implied, config);
  if (const GgufValue* base = metadata.find("rope.freq_base_swa");
      base && implied.contains("rope_parameters"))
    config["rope_parameters"]["sliding_attention"]["rope_theta"] = base->number().value_or(0);
  for (const GgufKey& key : kind.keys) {
    const bool shared = key.gguf == "expert_shared_feed_forward_length";
    const bool of_experts =
        key.gguf == "leading_dense_block_count" || (key.gguf.starts_with("expert_") && !shared);
    const GgufValue* value = metadata.find(key.gguf);
    if (!value || (of_experts && !has_experts) || (shared && value->integer() == 0)) continue;
    if (key.gguf == "feed_forward_length") config.erase("intermediate_size");
    // Lists by layer are read as sizes (gguf_shared_size).
    if (!value->integers()) key_of(config, key.config) = value_of(*value);
  }
  for (const GgufSign& sign : kind.signs) {
    const bool there = metadata.checkpoint.find(sign.tensor) != nullptr;
    config[std::string(sign.config)] = Json::parse(there ? sign.present : sign.absent);
  }
  if (has_experts && !kind.model_type.empty()) config["model_type"] = std::string(kind.model_type);
  leave_out_next_token_layers(config);
  set_windowed_layers(metadata, config);
  if (!kind.bias_key.empty())
    config[std::string(kind.bias_key)] = metadata.checkpoint.find("blk.0.attn_q.bias") != nullptr;
  if (!kind.query_norm_key.empty())
    config[std::string(kind.query_norm_key)] =
        metadata.checkpoint.find("blk.0.attn_q_norm.weight") != nullptr;
}

// Hybrids' files have the epsilon of their norms by the one key or the other.
Result<double> read_epsilon(const GgufMetadata& metadata) {
  const std::string_view keys[] = {"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"};
  const size_t first = metadata.kind.layer_norm ? 1 : 0;
  const bool other = !metadata.find(keys[first]) && metadata.find(keys[1 - first]);
  return metadata.checkpoint.gguf().number(metadata.prefix + std::string(keys[other ? 1 - first : first]));
}

// The width of a head of Mamba-2: GGUF has the width of all, and their number as the rank of time steps.
Status read_state_heads(const GgufMetadata& metadata, Json& config) {
  if (metadata.kind.state_head_key.empty()) return {};
  const GgufFile& gguf = metadata.checkpoint.gguf();
  ASSIGN_OR_RETURN(const int64_t width, gguf.integer(metadata.prefix + "ssm.inner_size"));
  ASSIGN_OR_RETURN(const int64_t heads, gguf.integer(metadata.prefix + "ssm.time_step_rank"));
  config[std::string(metadata.kind.state_head_key)] = heads > 0 ? width / heads : 0;
  return {};
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
    std::set<std::string_view> known;
    for (const Family* family : all_families()) {
      for (const GgufLayout& layout : family->gguf) known.insert(layout.architecture);
    }
    return unsupported(fmt::format("the GGUF architecture '{}' is not supported", architecture),
                       checkpoint.path(), fmt::format("Supported: {}.", fmt::join(known, ", ")));
  }
  const std::string prefix = std::string(architecture) + ".";
  Json config = Json::object();
  const GgufArchitecture kind = gguf_architecture(architecture);
  const GgufMetadata metadata{checkpoint, kind, prefix};
  RETURN_IF_ERROR(refuse_unread_keys(metadata));
  config["model_type"] = gguf_model_type(architecture);
  config["architectures"] = Json::array({std::string(architecture)});
  const bool only_experts = metadata.find("expert_feed_forward_length") != nullptr;
  for (const IntegerKey& key : kIntegerKeys) {
    const std::string name = prefix + std::string(key.gguf);
    const bool required = key.required && !(only_experts && key.gguf == "feed_forward_length");
    if (!required && !gguf.find(name)) continue;
    ASSIGN_OR_RETURN(const int64_t size, gguf_shared_size(metadata, key.gguf));
    // Heads and widths are 0 where no layer has any, and a window is 0 where there is none.
    const bool counts = key.gguf == "block_count" || key.gguf == "embedding_length";
    if (size != 0 || counts) config[std::string(key.config)] = size;
  }
  if (!kind.eps_key.empty()) {
    ASSIGN_OR_RETURN(config[std::string(kind.eps_key)], read_epsilon(metadata));
  }
  if (kind.latent) RETURN_IF_ERROR(set_latent_sizes(metadata, config));
  if (kind.rope && !kind.latent) read_rotary(gguf, prefix, config);
  read_query_scale(architecture, config);
  if (kind.rope) RETURN_IF_ERROR(read_rope_keys(metadata, config));
  read_particulars(metadata, config);
  RETURN_IF_ERROR(read_state_heads(metadata, config));
  RETURN_IF_ERROR(set_layer_kinds(metadata, config));
  RETURN_IF_ERROR(set_exceptions(metadata, config));
  rename_keys(kind.renames, config);
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
  // Layers that read the keys of an earlier one have projections of their own in files, which nothing reads.
  for (size_t i = 0; gguf && i < spec.blocks.size(); ++i) {
    const auto* a = std::get_if<AttentionSpec>(&spec.blocks[i].mixer);
    if (!a || a->kv_from < 0) continue;
    for (const char* unread : {"k", "v", "k_norm"})
      spec.ignored.push_back(fmt::format("blk.{}.attn_{}.weight", i, unread));
  }
  // Files of a while had latents' projections both in one tensor and in two.
  if (gguf && checkpoint.find("blk.0.attn_kv_b.weight"))
    spec.ignored.insert(spec.ignored.end(), {".attn_k_b.weight", ".attn_v_b.weight"});
  return spec;
}

Result<Json> checkpoint_config(const Checkpoint& checkpoint) {
  if (checkpoint.format() == CheckpointFormat::gguf) return gguf_config(checkpoint);
  return checkpoint.config();
}

}  // namespace tenon
