// Any bytes as a recipe: an error that names the place, or a recipe that is printed and read back as the
// same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "run/recipe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view yaml(reinterpret_cast<const char*>(data), size);
  tenon::TrainRecipe recipe, again;
  const tenon::Status read = tenon::parse_recipe(yaml, "recipe", recipe);
  if (!read.ok()) {
    CHECK(!read.error().message.empty() && read.error().subject.starts_with("recipe"));
    return 0;
  }
  (void)tenon::check_recipe(recipe);
  CHECK(tenon::parse_recipe(tenon::recipe_yaml(recipe), "printed", again).ok() && again == recipe);
  return 0;
}
