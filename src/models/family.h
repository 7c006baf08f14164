// A family is a name, the architectures it covers, and a function that reads a configuration into a
// ModelSpec. Configurations come as Hugging Face's config.json; a GGUF file's metadata is put into that form
// first (models/gguf_config.h), so that a family reads one form only.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "models/config_reader.h"
#include "models/model_spec.h"

namespace tenon {

// How GGUF stores the family.
struct GgufLayout {
  std::string_view architecture;  // general.architecture
  bool permuted_rope = false;     // rows of q and k are interleaved pairs, to be put back to half-split
};

struct Family {
  std::string_view name;
  std::array<std::string_view, 4> model_types;  // config.json's model_type; the rest empty
  std::span<const GgufLayout> gguf;
  Result<ModelSpec> (*read)(ConfigReader& config);
};

std::span<const Family* const> all_families();  // in the order of family_list.inc

// The family of a model_type, or of a GGUF architecture; null when there is none.
const Family* find_family(std::string_view model_type);
const GgufLayout* find_gguf_layout(std::string_view architecture);

// Reads a configuration: finds the family by model_type and lets it read. Errors: unsupported (an
// architecture that is not in the list, with those that are), bad_file.
Result<ModelSpec> read_model_spec(const Json& config, std::string subject);

}  // namespace tenon
