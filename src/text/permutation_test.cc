#include "text/permutation.h"

#include <gtest/gtest.h>

#include <vector>

namespace tenon {
namespace {

std::vector<int64_t> order(uint64_t seed, uint64_t epoch, int64_t count) {
  const Permutation permutation(seed, epoch, count);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(permutation(i));
  return out;
}

// From a Python implementation of the header's formulas (its splitmix64 checked against the published first
// output of seed 1234567, 6457827717110365317).
TEST(Permutation, IsTheWrittenDownOne) {
  EXPECT_EQ(order(7, 0, 10), (std::vector<int64_t>{0, 5, 4, 3, 2, 1, 6, 9, 7, 8}));
  EXPECT_EQ(order(7, 1, 10), (std::vector<int64_t>{0, 8, 2, 3, 9, 1, 7, 6, 5, 4}));
  EXPECT_EQ(order(8, 0, 10), (std::vector<int64_t>{1, 0, 9, 5, 4, 8, 2, 7, 6, 3}));
  EXPECT_EQ(order(~uint64_t{0}, 3, 17),
            (std::vector<int64_t>{11, 13, 2, 15, 5, 0, 10, 12, 14, 16, 9, 3, 7, 8, 6, 1, 4}));
}

TEST(Permutation, IsABijectionOfEveryCount) {
  for (const int64_t count : {1, 2, 3, 4, 5, 16, 17, 255, 256, 257, 1000, 65537}) {
    std::vector<bool> seen(static_cast<size_t>(count), false);
    for (const int64_t value : order(42, 5, count)) {
      ASSERT_TRUE(value >= 0 && value < count);
      ASSERT_FALSE(seen[static_cast<size_t>(value)]) << count;
      seen[static_cast<size_t>(value)] = true;
    }
  }
  EXPECT_EQ(order(1, 1, 0).size(), 0u);
}

TEST(Permutation, ReachesHugeCounts) {
  const int64_t count = (int64_t{1} << 62) - 1;
  const Permutation permutation(1, 2, count);
  for (int64_t i = 0; i < 1000; ++i) EXPECT_LT(permutation(count - 1 - i), count);
  EXPECT_NE(permutation(0), permutation(1));
}

// Over many seeds each place holds each value about equally often: 4000 draws of 8 values, 500 expected,
// standard deviation 21.
TEST(Permutation, FavoursNoPlace) {
  std::vector<int> hits(64, 0);
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const Permutation permutation(seed, 0, 8);
    for (int64_t i = 0; i < 8; ++i) ++hits[static_cast<size_t>(8 * i + permutation(i))];
  }
  for (const int count : hits) EXPECT_NEAR(count, 500, 105);
}

TEST(EvalSplit, IsTheWrittenDownOne) {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < 100; ++row)
    if (in_eval_split(7, row, 0.1)) rows.push_back(row);
  EXPECT_EQ(rows, (std::vector<int64_t>{0, 17, 24, 25, 54, 61}));
}

TEST(EvalSplit, TakesTheShareAskedFor) {
  int64_t rows = 0;
  for (int64_t row = 0; row < 100000; ++row) {
    EXPECT_FALSE(in_eval_split(3, row, 0.0));
    rows += in_eval_split(3, row, 0.25);
  }
  EXPECT_NEAR(static_cast<double>(rows), 25000, 700);
}

}  // namespace
}  // namespace tenon
