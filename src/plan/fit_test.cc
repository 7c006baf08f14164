#include "plan/fit.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Fit, VerdictAtTheEdge) {
  EXPECT_TRUE(fit(100, 100).fits);
  EXPECT_EQ(fit(100, 100).shortfall_bytes, 0);
  EXPECT_FALSE(fit(101, 100).fits);
  EXPECT_EQ(fit(101, 100).shortfall_bytes, 1);
}

TEST(Fit, NeededBytesCountArenasAndMappedFiles) {
  Plan plan;
  plan.static_bytes = 1;
  plan.work_bytes = 2;
  plan.external_bytes = 4;
  EXPECT_EQ(needed_bytes(plan), 7);
}

TEST(Fit, SuggestsWhatFitsNearestFirst) {
  const std::vector<FitCandidate> candidates{
      {"too large", [] { return 101; }},
      {"small", [] { return 10; }},
      {"impossible", [] { return Result<int64_t>(unsupported("no kernel")); }},
      {"just right", [] { return 100; }},
      {"just right too", [] { return 100; }},
  };
  const auto suggestions = suggest(candidates, 100);
  ASSERT_EQ(suggestions.size(), 3u);
  EXPECT_EQ(suggestions[0].description, "just right");
  EXPECT_EQ(suggestions[1].description, "just right too");
  EXPECT_EQ(suggestions[2].description, "small");
  EXPECT_EQ(suggestions[2].needed_bytes, 10);
}

}  // namespace
}  // namespace tenon
