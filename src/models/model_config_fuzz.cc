// Any bytes as a config.json: a model, or an error that says what is wrong. Nothing of the size that a number
// in it claims may be allocated before the number was checked.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "io/json_file.h"
#include "models/family.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = tenon::parse_json(text, "config.json");
  if (!config.ok()) return 0;
  const auto spec = tenon::read_model_spec(*config, "config.json");
  if (spec.ok()) {
    CHECK(spec->vocab > 0 && !spec->blocks.empty());
  } else {
    CHECK(!spec.error().message.empty());
  }
  return 0;
}
