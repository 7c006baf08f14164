// The metadata of a golden family as llama.cpp's converter writes it, by tests/gguf_names.txt.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "io/gguf_writer.h"
#include "tests/gguf_converter.h"

namespace tenon {

// A golden's config.json, and what it says under names that differ between families.
struct GoldenConfig {
  const Json& config;

  const Json* find(const std::string& key) const;  // "a.b" is b in a; null: not there, or null
  // The first of these keys that is there; a failed expectation where none is.
  int64_t size(std::initializer_list<const char*> keys) const;
  int64_t size(const char* key) const { return size({key}); }
  int64_t heads() const;
  int64_t head_dim() const;
  int64_t further_layers() const;  // that predict further tokens, which are blocks of GGUF
  // Of layers with attention, a state or neither; Jamba's come at regular distances.
  std::vector<std::string> layer_kinds() const;
};

// `lists` are keys whose values came from weights.
GgufHeader converted_header(const ConvertedFamily& family, const GoldenConfig& golden,
                            const std::map<std::string, std::vector<float>>& lists);

}  // namespace tenon
