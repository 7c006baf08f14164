#include "base/nearest_name.h"

#include <gtest/gtest.h>

#include <array>

namespace tenon {
namespace {

TEST(NearestName, CountsEditsAndSwaps) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("rnak", "rank"), 1);
  EXPECT_EQ(edit_distance("ca", "abc"), 3);  // 2 where a place may be edited twice
}

TEST(NearestName, FindsSlipsOnly) {
  constexpr std::array<std::string_view, 5> kNames = {"rank", "alpha", "warmup-steps", "weight-decay",
                                                      "seed"};
  EXPECT_EQ(nearest_name("rnak", kNames), "rank");
  EXPECT_EQ(nearest_name("warmup_steps", kNames), "warmup-steps");
  EXPECT_EQ(nearest_name("Seed", kNames), "seed");
  EXPECT_EQ(nearest_name("warm", kNames), "warmup-steps");  // the only one that begins so
  EXPECT_EQ(nearest_name("w", kNames), "");
  EXPECT_EQ(nearest_name("batch-size", kNames), "");
  EXPECT_EQ(nearest_name("", kNames), "");
  EXPECT_EQ(nearest_name(std::string(100'000, 'x'), kNames), "");
  EXPECT_EQ(did_you_mean("aplha", kNames), "did you mean 'alpha'?");
  EXPECT_EQ(did_you_mean("zzz", kNames), "");
}

}  // namespace
}  // namespace tenon
