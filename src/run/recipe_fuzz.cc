// Any bytes as a recipe: an error that names the place, or a recipe that is printed and read back as the
// same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "run/recipe.h"

namespace {

// Each with its end. A recipe prints a line for every setting.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t size = text.find('\n') + 1;
    lines.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

// What the recipe prints beyond its defaults: reading all sixty lines back each time would be most of the
// work.
std::string own_lines(const tenon::TrainRecipe& recipe) {
  static const std::vector<std::string> defaults = lines_of(tenon::recipe_yaml({}));
  const std::vector<std::string> lines = lines_of(tenon::recipe_yaml(recipe));
  CHECK(lines.size() == defaults.size());
  std::string own;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] != defaults[i]) own += lines[i];
  }
  return own;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tenon::TrainRecipe defaults;
  const std::string_view yaml(reinterpret_cast<const char*>(data), size);
  tenon::TrainRecipe recipe, again;
  const tenon::Status read = tenon::parse_recipe(yaml, "recipe", recipe);
  if (!read.ok()) {
    CHECK(!read.error().message.empty() && read.error().subject.starts_with("recipe"));
    return 0;
  }
  if (recipe == defaults) return 0;
  (void)tenon::check_recipe(recipe);
  CHECK(tenon::parse_recipe(own_lines(recipe), "printed", again).ok() && again == recipe);
  return 0;
}
