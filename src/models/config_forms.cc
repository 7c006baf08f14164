#include "models/config_forms.h"

#include <fmt/format.h>

#include <string_view>

#include "base/json.h"

namespace tenon {
namespace {

// Text parts that are another architecture but for their name.
struct SameAs {
  std::string_view model_type;
  std::string_view family;
};
constexpr SameAs kSameAs[] = {
    {"gemma3", "gemma3_text"},
    {"gemma3n", "gemma3n_text"},
    {"llama4", "llama4_text"},
    {"qwen2_vl", "qwen2"},
    {"qwen2_vl_text", "qwen2"},
    {"qwen2_5_vl", "qwen2"},
    {"qwen2_5_vl_text", "qwen2"},
    {"qwen3_vl", "qwen3"},
    {"qwen3_vl_text", "qwen3"},
    {"qwen3_vl_moe", "qwen3_moe"},
    {"qwen3_vl_moe_text", "qwen3_moe"},
    {"qwen3_5", "qwen3_5_text"},
    {"qwen3_5_moe", "qwen3_5_moe_text"},
    {"glm4v_text", "glm4"},
    {"gemma4", "gemma4_text"},
    {"inkling2", "inkling2_text"},
    {"inkling2_loop", "inkling2_loop_text"},
};

// What transformers' configurations have where a nested file, which leaves defaults out, says nothing.
struct Defaults {
  std::string_view model_type;
  std::string_view keys;
};
constexpr Defaults kDefaults[] = {
    {"gemma3_text",
     R"({"vocab_size":262208,"hidden_size":2304,"intermediate_size":9216,"num_hidden_layers":26,
         "num_attention_heads":8,"num_key_value_heads":4,"head_dim":256,"hidden_activation":"gelu_pytorch_tanh",
         "max_position_embeddings":131072,"rms_norm_eps":1e-6,"rope_theta":1000000.0,
         "rope_local_base_freq":10000.0,"query_pre_attn_scalar":256,"sliding_window":4096,
         "sliding_window_pattern":6,"tie_word_embeddings":true})"},
    {"gemma2",
     R"({"vocab_size":256000,"hidden_size":2304,"intermediate_size":9216,"num_hidden_layers":26,
         "num_attention_heads":8,"num_key_value_heads":4,"head_dim":256,"hidden_activation":"gelu_pytorch_tanh",
         "max_position_embeddings":8192,"rms_norm_eps":1e-6,"rope_theta":10000.0,"query_pre_attn_scalar":256,
         "sliding_window":4096,"final_logit_softcapping":30.0,"attn_logit_softcapping":50.0,
         "tie_word_embeddings":true})"},
    {"gemma",
     R"({"vocab_size":256000,"hidden_size":3072,"intermediate_size":24576,"num_hidden_layers":28,
         "num_attention_heads":16,"num_key_value_heads":16,"head_dim":256,"hidden_act":"gelu_pytorch_tanh",
         "max_position_embeddings":8192,"rms_norm_eps":1e-6,"rope_theta":10000.0,"tie_word_embeddings":true})"},
    {"llama",
     R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,
         "num_attention_heads":32,"hidden_act":"silu","max_position_embeddings":2048,"rms_norm_eps":1e-6,
         "rope_theta":10000.0})"},
    {"mistral",
     R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,
         "num_attention_heads":32,"num_key_value_heads":8,"hidden_act":"silu","max_position_embeddings":131072,
         "rms_norm_eps":1e-6,"rope_theta":10000.0,"sliding_window":4096})"},
    {"qwen2",
     R"({"vocab_size":151936,"hidden_size":4096,"intermediate_size":22016,"num_hidden_layers":32,
         "num_attention_heads":32,"num_key_value_heads":32,"hidden_act":"silu","max_position_embeddings":32768,
         "rms_norm_eps":1e-6,"rope_theta":10000.0,"use_sliding_window":false})"},
};

std::string text_of(const Json& config, const char* key) {
  const auto at = config.find(key);
  return at != config.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::string same_as(const std::string& model_type) {
  for (const SameAs& each : kSameAs) {
    if (each.model_type == model_type) return std::string(each.family);
  }
  return model_type;
}

Json defaults_of(const std::string& model_type) {
  for (const Defaults& each : kDefaults) {
    if (each.model_type == model_type) return Json::parse(each.keys);
  }
  return Json::object();
}

// Sections of positions by image axis say nothing about text, where all axes count alike.
void drop_sections(Json& config) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto rope = config.find(key);
    if (rope == config.end() || !rope->is_object()) continue;
    rope->erase("mrope_section");
    rope->erase("mrope_interleaved");
    for (const char* kind : {"type", "rope_type"}) {
      if (text_of(*rope, kind) == "mrope") (*rope)[kind] = "default";
    }
  }
}

Json nested_config(const Json& outer, const Json& inner) {
  const std::string own = text_of(inner, "model_type");
  const std::string model_type = same_as(own.empty() ? text_of(outer, "model_type") : own);
  Json out = defaults_of(model_type);
  if (inner.contains("rope_parameters")) out.erase("rope_theta"), out.erase("rope_local_base_freq");
  out.update(inner);
  for (const char* key : {"quantization_config", "tie_word_embeddings", "architectures"}) {
    if (!inner.contains(key) && outer.contains(key)) out[key] = outer[key];
  }
  out["model_type"] = model_type;
  return out;
}

Error cannot_read(const std::string& method, const std::string& subject) {
  return unsupported(fmt::format("weights quantised by {} cannot be read", method), subject,
                     "Use the unquantised checkpoint, one in FP8 or MXFP4, or a GGUF file.");
}

}  // namespace

bool is_multimodal(const Json& config) {
  const auto text = config.find("text_config");
  return (text != config.end() && text->is_object()) || config.contains("vision_config") ||
         config.contains("audio_config");
}

Json language_config(const Json& config) {
  if (!config.is_object()) return config;
  const auto text = config.find("text_config");
  const bool nested = text != config.end() && text->is_object();
  Json out = nested ? nested_config(config, *text) : config;
  if (!is_multimodal(config)) return out;
  out["model_type"] = same_as(text_of(out, "model_type"));
  for (const char* key : {"vision_config", "audio_config", "vision_start_token_id", "vision_end_token_id",
                          "vision_token_id", "image_token_id", "video_token_id", "image_token_index"})
    out.erase(key);
  drop_sections(out);
  return out;
}

Result<StoredQuantisation> read_quantisation(const Json& config, const std::string& subject) {
  const auto at = config.find("quantization_config");
  StoredQuantisation out;
  if (at == config.end() || at->is_null()) return out;
  if (!at->is_object()) return bad_file("the key 'quantization_config' must be an object", subject);
  out.method = text_of(*at, "quant_method");
  const std::string format = text_of(*at, "format");
  if (out.method == "compressed-tensors" && format != "float-quantized" && format != "naive-quantized")
    return cannot_read(fmt::format("{} ({})", out.method, format), subject);
  if (out.method != "fp8" && out.method != "mxfp4" && out.method != "compressed-tensors" &&
      out.method != "fbgemm_fp8")
    return cannot_read(out.method.empty() ? "an unnamed method" : out.method, subject);
  const auto block = at->find("weight_block_size");
  if (block == at->end() || block->is_null()) return out;
  const bool pair = block->is_array() && block->size() == 2 && (*block)[0].is_number_integer() &&
                    (*block)[1].is_number_integer();
  if (pair) {
    out.block_rows = (*block)[0].get<int64_t>();
    out.block_columns = (*block)[1].get<int64_t>();
  }
  if (!pair || out.block_rows < 1 || out.block_columns < 1)
    return bad_file("the key 'weight_block_size' must be two positive integers", subject);
  return out;
}

}  // namespace tenon
