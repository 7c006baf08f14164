// Rotary frequencies against transformers', for sequences shorter and longer than the original length
// (tools/make_rope_goldens.py).
#include "models/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "ops/interpret.h"
#include "ops/rope_table.h"
#include "ops/rope_table_by_length.h"

namespace tenon {
namespace {

// cos and sin of position 1 in a sequence of that many tokens, as the forward program makes them.
std::vector<double> table_of(const RopeSpec& rope, int64_t tokens) {
  Program program;
  Builder b(program);
  const ValueId positions = b.add_static(Role::input, "positions", {DType::i32, Shape{2}});
  const ValueId length = b.add_static(Role::input, "length", {DType::i32, Shape{2}});
  const Shape pairs{static_cast<int64_t>(rope.inv_freq.size())};
  const ValueId near = b.add_constant("near", pairs, rope.inv_freq);
  const ValueId far = rope.long_inv_freq.empty() ? near : b.add_constant("far", pairs, rope.long_inv_freq);
  const ValueId table =
      rope.long_from == 0
          ? rope_table(b, positions, near, rope.amplitude)
          : rope_table_by_length(b, positions, length, near, far,
                                 {rope.long_from, rope.dynamic_factor, rope.theta, rope.amplitude});
  const double length = static_cast<double>(tokens);
  return evaluate_reference(program, {{"positions", {1, length - 1}},
                                      {"length", {length, length}}})[static_cast<size_t>(table.index)];
}

TEST(Rope, FrequenciesAreThoseOfTransformersBeyondTheOriginalLength) {
  std::ifstream file(TENON_SOURCE_DIR "/tests/models/rope_goldens.json");
  std::stringstream text;
  text << file.rdbuf();
  const Json cases = Json::parse(text.str());
  ASSERT_GT(cases.size(), 10u);
  for (const Json& each : cases) {
    const std::string name = each["name"].get<std::string>();
    const auto want = each["inv_freq"].get<std::vector<double>>();
    const double amplitude = each["amplitude"].get<double>();
    const Json config = {{"rope_parameters", each["rope_parameters"]},
                         {"max_position_embeddings", each["longest"]}};
    ConfigReader reader(config, name);
    const RopeSpec rope = read_rope(reader, {.head_dim = static_cast<int64_t>(2 * want.size()),
                                             .max_positions = each["longest"].get<int64_t>()});
    ASSERT_TRUE(reader.status().ok()) << reader.status().error().text();
    const std::vector<double> table = table_of(rope, each["tokens"].get<int64_t>());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(table[i], amplitude * std::cos(want[i]), 1e-6) << name << ", pair " << i;
      EXPECT_NEAR(table[want.size() + i], amplitude * std::sin(want[i]), 1e-6 * std::max(want[i], 1e-3))
          << name << ", pair " << i;
    }
  }
}

}  // namespace
}  // namespace tenon
