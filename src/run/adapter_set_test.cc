#include "run/adapter_set.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/hash.h"
#include "ops/philox.h"

namespace tenon {
namespace {

// Number i of A is word 0 of philox4x32 for the counter i, under a key of the name and the seed, spread over
// the bound that nn.Linear and PEFT draw from; drawing several at once changes no bit of it, nor do threads.
TEST(NewAdapter, DrawsEachNumberFromItsOwnCounter) {
  constexpr uint64_t kSeed = 5;
  std::vector<AdapterModule> modules(3);
  for (size_t i = 0; i < modules.size(); ++i) {
    modules[i].module = modules[i].key = "layer." + std::to_string(i);
    modules[i].in = 7, modules[i].out = 4, modules[i].rank = 3;
  }
  const AdapterSet set = new_adapter(modules, {}, 0, kSeed);
  for (const AdapterModule& module : modules) {
    const std::vector<float>& a = set.values.at(module.a_name());
    ASSERT_EQ(a.size(), 21u);
    const uint64_t key = hash_bytes(module.a_name(), kSeed ^ kHashSeed);
    for (uint32_t i = 0; i < 21; ++i) {
      const uint32_t word =
          philox4x32({i, 0, 0, 0}, {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)})[0];
      const double uniform = 2.0 * (word + 0.5) / 4294967296.0 - 1.0;
      EXPECT_EQ(a[i], static_cast<float>(uniform * (1.0 / std::sqrt(7.0)))) << module.module << " " << i;
    }
    EXPECT_EQ(set.values.at(module.b_name()), std::vector<float>(12, 0.0f));
  }
}

}  // namespace
}  // namespace tenon
