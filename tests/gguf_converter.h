// Golden families as llama.cpp's converter writes them, by tests/gguf_names.txt.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace tenon {

struct ConvertedFamily {
  struct Metadata {
    std::string kind, gguf;          // as tools/make_gguf_names.py says
    std::vector<std::string> words;  // keys of config.json, or a value
  };
  std::string golden, architecture, actions;
  std::map<std::string, std::string> names;  // modules of the folder to those of GGUF
  std::vector<Metadata> keys;

  bool does(const char* action) const;
  std::string test_name() const { return golden + (does("absorb") ? "_absorbed" : ""); }
};

// Those that need an action; "": all.
std::vector<ConvertedFamily> converted_families(const char* action = "");

// Puts the settings into `config` that llama.cpp has fixed where config.json may say otherwise, and rope
// without scaling.
void use_llama_cpp_settings(const ConvertedFamily& family, Json& config);

// The Hugging Face folder `folder`, whose weights are f32, as the GGUF file `path`. A failed expectation
// where a name is not known.
void write_converted(const ConvertedFamily& family, const Json& config, const std::string& folder,
                     const std::string& path);

}  // namespace tenon
