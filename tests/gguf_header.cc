#include "tests/gguf_header.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <sstream>

namespace tenon {
namespace {

// Shares as deviations of a normal distribution, by bisection; nothing lies below none.
std::vector<float> quantiles(const std::vector<double>& shares) {
  std::vector<float> out;
  for (const double share : shares) {
    double low = -10, high = 10;
    for (int i = 0; i < 100; ++i) {
      const double middle = (low + high) / 2;
      (0.5 * std::erfc(-middle / std::sqrt(2.0)) < share ? low : high) = middle;
    }
    out.push_back(share > 0 ? static_cast<float>(low) : -std::numeric_limits<float>::infinity());
  }
  return out;
}

void add_flags(GgufHeader& header, const std::string& key, const std::vector<bool>& flags) {
  std::vector<std::byte> raw;
  for (const bool flag : flags) raw.push_back(std::byte{flag});
  header.add(key, {GgufType::array, GgufType::boolean, static_cast<int64_t>(raw.size()), raw});
}

void add_value(GgufHeader& header, const GoldenConfig& golden, const std::string& key, const Json& value) {
  if (value.is_boolean()) {
    header.add_bool(key, value.get<bool>());
  } else if (value.is_number_integer()) {
    int64_t count = value.get<int64_t>();
    if (key.ends_with(".block_count")) count += golden.further_layers();
    header.add_u32(key, static_cast<uint32_t>(count));
  } else if (value.is_string()) {
    header.add_string(key, value.get<std::string>());
  } else if (value.is_array()) {
    header.add_i32s(key, value.get<std::vector<int32_t>>());
  } else {
    header.add_f32(key, value.get<float>());
  }
}

void add_metadata(GgufHeader& header, const GoldenConfig& golden, const ConvertedFamily::Metadata& data) {
  const std::string &key = data.gguf, &kind = data.kind;
  if (kind == "value") return add_value(header, golden, key, Json::parse(data.words[0]));
  const Json& value = *golden.find(data.words[0]);
  if (kind == "key") return add_value(header, golden, key, value);
  if (kind == "quantiles") return header.add_f32s(key, quantiles(value.get<std::vector<double>>()));
  if (kind == "sections") {
    auto sections = value.get<std::vector<int32_t>>();
    sections.resize(4);
    return header.add_i32s(key, sections);
  }
  if (kind == "flags") {
    std::vector<bool> flags;
    for (const std::string& each : golden.layer_kinds()) flags.push_back(each == data.words[1]);
    return add_flags(header, key, flags);
  }
  const int64_t first = value.get<int64_t>();
  if (kind == "list") {
    std::vector<int32_t> values;
    for (const std::string& each : golden.layer_kinds())
      values.push_back(each == data.words[1] ? static_cast<int32_t>(first) : 0);
    return header.add_i32s(key, values);
  }
  const int64_t second = golden.size(data.words[1].c_str());
  add_value(header, golden, key, Json(kind == "sum" ? first + second : first * second));
}

void add_yarn(GgufHeader& header, const std::string& architecture, const Json& rope) {
  const std::string prefix = architecture + ".rope.scaling.";
  header.add_string(prefix + "type", "yarn");
  header.add_f32(prefix + "factor", rope["factor"].get<float>());
  header.add_u32(prefix + "original_context_length",
                 rope["original_max_position_embeddings"].get<uint32_t>());
  header.add_f32(prefix + "yarn_log_multiplier", 0.1F * rope["mscale_all_dim"].get<float>());
}

}  // namespace

const Json* GoldenConfig::find(const std::string& key) const {
  const Json* at = &config;
  std::istringstream parts(key);
  for (std::string part; std::getline(parts, part, '.');) {
    if (!at->contains(part) || (*at)[part].is_null()) return nullptr;
    at = &(*at)[part];
  }
  return at;
}

int64_t GoldenConfig::size(std::initializer_list<const char*> keys) const {
  for (const char* key : keys) {
    if (const Json* value = find(key)) return value->get<int64_t>();
  }
  ADD_FAILURE() << "no size " << *keys.begin();
  return 1;
}

int64_t GoldenConfig::heads() const {
  return size({"num_attention_heads", "n_heads", "n_head"});
}

int64_t GoldenConfig::head_dim() const {
  if (config.contains("qk_rope_head_dim")) return size("qk_rope_head_dim");
  return find("head_dim") ? size("head_dim") : size({"hidden_size", "d_model"}) / heads();
}

int64_t GoldenConfig::further_layers() const {
  return config.value("num_nextn_predict_layers", int64_t{0});
}

std::vector<std::string> GoldenConfig::layer_kinds() const {
  std::vector<std::string> kinds;
  for (const char* key : {"layer_types", "layers_block_type"}) {
    if (!config.contains(key)) continue;
    kinds = config[key].get<std::vector<std::string>>();
  }
  if (!config.contains("attn_layer_period")) return kinds;
  for (int64_t i = 0; i < size("num_hidden_layers"); ++i) {
    const bool attends = i % size("attn_layer_period") == size("attn_layer_offset");
    kinds.push_back(attends ? "full_attention" : "mamba");
  }
  return kinds;
}

GgufHeader converted_header(const ConvertedFamily& family, const GoldenConfig& golden,
                            const std::map<std::string, std::vector<float>>& lists) {
  const Json& config = golden.config;
  const std::string& name = family.architecture;
  GgufHeader header;
  header.add_string("general.architecture", name);
  std::set<std::string> added;
  for (const ConvertedFamily::Metadata& data : family.keys) {
    const bool there = data.kind == "value" || golden.find(data.words[0]);
    if (there && added.insert(data.gguf).second) add_metadata(header, golden, data);
  }
  for (const auto& [key, values] : lists) header.add_f32s(key, values);
  if (!config.contains("rope_parameters")) return header;
  const Json& rope = config["rope_parameters"];
  const Json& full = rope.contains("full_attention") ? rope["full_attention"] : rope;
  header.add_f32(name + ".rope.freq_base", full["rope_theta"].get<float>());
  const double part = full.value("partial_rotary_factor", 1.0);
  const double rotated = part * static_cast<double>(golden.head_dim());
  header.add_u32(name + ".rope.dimension_count", static_cast<uint32_t>(rotated));
  if (full.value("rope_type", "default") == "yarn") add_yarn(header, name, full);
  return header;
}

}  // namespace tenon
