// What `--targets all-linear` adapts in each golden family is what PEFT takes by that name
// (tests/linear_modules.txt).
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "io/checkpoint.h"
#include "models/gguf_config.h"
#include "models/routers.h"
#include "run/programs.h"
#include "tests/golden_reference.h"

namespace tenon {
namespace {

using Counts = std::map<std::string, int64_t>;  // modules, with N for each number

std::map<std::string, Counts> expected_modules() {
  std::ifstream file(source_tree() + "/tests/linear_modules.txt");
  std::map<std::string, Counts> out;
  std::string family;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first, second;
    words >> first >> second;
    if (first == "family") family = second;
    if (first != "family" && first != "#") out[family][first] = std::stoll(second);
  }
  return out;
}

std::string general(const std::string& module) {
  std::istringstream parts(module);
  std::string out;
  for (std::string part; std::getline(parts, part, '.');) {
    const bool number = part.find_first_not_of("0123456789") == std::string::npos;
    out += (out.empty() ? "" : ".") + (number ? "N" : part);
  }
  return out;
}

TEST(LinearModules, AllLinearTakesWhatPeftTakes) {
  std::map<std::string, std::string> paths = full_goldens();
  paths.merge(packed_goldens());
  const auto expected = expected_modules();
  EXPECT_GT(expected.size(), 150U);
  // Modules that these call otherwise, or share between layers.
  const std::set<std::string> other_names = {"axk2", "deepseek_v4", "zamba", "zamba2"};
  for (const auto& [family, want] : expected) {
    if (!paths.contains(family) || other_names.contains(family)) continue;
    const auto checkpoint = Checkpoint::open(open_golden(paths.at(family)).folder);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().text();
    const auto spec = checkpoint_spec(*checkpoint);
    if (!spec.ok()) continue;  // refused by name; tests/golden_test.cc looks
    AdapterOptions options;
    options.targets = {"all-linear"};
    options.not_linear = parameter_routers(*spec);
    const auto modules = choose_modules(forward_program(*spec, 1, {}), options);
    ASSERT_TRUE(modules.ok()) << modules.error().text();
    Counts got;
    for (const AdapterModule& module : *modules) ++got[general(module.module)];
    for (const auto& [name, count] : want) EXPECT_EQ(got[name], count) << family << ": " << name;
    for (const auto& [name, count] : got)
      EXPECT_TRUE(count == 0 || want.contains(name)) << family << ": " << name;
  }
}

}  // namespace
}  // namespace tenon
