#include "models/family.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

namespace tenon {

#define TENON_FAMILY(name) const Family& name##_family();
#include "models/family_list.inc"
#undef TENON_FAMILY

std::span<const Family* const> all_families() {
  static const std::array families = {
#define TENON_FAMILY(name) &name##_family(),
#include "models/family_list.inc"
#undef TENON_FAMILY
  };
  return families;
}

const Family* find_family(std::string_view model_type) {
  for (const Family* family : all_families()) {
    for (std::string_view known : family->model_types) {
      if (known == model_type) return family;
    }
  }
  return nullptr;
}

const GgufLayout* find_gguf_layout(std::string_view architecture) {
  for (const Family* family : all_families()) {
    for (const GgufLayout& layout : family->gguf) {
      if (layout.architecture == architecture) return &layout;
    }
  }
  return nullptr;
}

Result<ModelSpec> read_model_spec(const nlohmann::json& config, std::string subject) {
  ConfigReader reader(config, std::move(subject));
  const std::string model_type = reader.text_or("model_type", "");
  RETURN_IF_ERROR(reader.status());
  if (model_type.empty()) {
    return bad_file("the key 'model_type' is missing", reader.subject(), "It names the architecture.");
  }
  const Family* family = find_family(model_type);
  if (!family) {
    std::string known;
    for (const Family* each : all_families()) {
      for (std::string_view name : each->model_types)
        known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
    }
    return unsupported(fmt::format("the architecture '{}' is not supported", model_type), reader.subject(),
                       fmt::format("Supported: {}.", known));
  }
  ASSIGN_OR_RETURN(ModelSpec spec, family->read(reader));
  RETURN_IF_ERROR(reader.status());
  const std::vector<std::string> architectures = reader.texts_or_empty("architectures");
  spec.family = family->name;
  spec.architecture = architectures.empty() ? model_type : architectures[0];
  return spec;
}

}  // namespace tenon
