#include "text/mixture.h"

#include <gtest/gtest.h>

#include <map>

#include "text/permutation.h"

namespace tenon {
namespace {

using Rows = std::vector<int64_t>;

Rows epoch_of(const Mixture& mixture, uint64_t seed, int64_t epoch, bool shuffle = true) {
  Rows rows;
  for (int64_t slot = 0; slot < mixture.epoch_rows(); ++slot)
    rows.push_back(mixture.row(seed, epoch, slot, shuffle));
  return rows;
}

TEST(Mixture, WithoutWeightsIsEveryRowOnce) {
  const Mixture mixture({{3, std::nullopt}, {2, std::nullopt}});
  EXPECT_EQ(mixture.epoch_rows(), 5);
  EXPECT_EQ(epoch_of(mixture, 9, 4), (Rows{0, 1, 2, 3, 4}));
  EXPECT_EQ(mixture.source_of(2), 0u);
  EXPECT_EQ(mixture.source_of(3), 1u);
}

// From a Python implementation of the header's words and of permutation.h's formulas.
TEST(Mixture, IsTheWrittenDownOne) {
  const Mixture two({{6, 0.7}, {4, 0.3}});
  EXPECT_EQ(two.sources()[0].epoch_rows, 7);
  EXPECT_EQ(two.sources()[1].epoch_rows, 3);
  EXPECT_EQ(epoch_of(two, 7, 0), (Rows{2, 3, 5, 4, 1, 0, 1, 9, 6, 8}));
  EXPECT_EQ(epoch_of(two, 7, 1), (Rows{0, 4, 2, 3, 5, 5, 3, 7, 6, 9}));
  EXPECT_EQ(epoch_of(two, 7, 2), (Rows{1, 2, 4, 0, 5, 1, 3, 7, 8, 9}));
  const Mixture three({{5, 1.0}, {2, 4.0}, {3, 1.0}});
  EXPECT_EQ(epoch_of(three, 3, 0), (Rows{2, 3, 6, 5, 6, 5, 5, 6, 8, 7}));
  EXPECT_EQ(epoch_of(three, 3, 1), (Rows{0, 4, 5, 6, 6, 5, 6, 5, 9, 9}));
}

TEST(Mixture, FileOrderWithoutShuffling) {
  const Mixture mixture({{3, 0.5}, {3, 0.5}});
  EXPECT_EQ(epoch_of(mixture, 1, 0, false), (Rows{0, 1, 2, 3, 4, 5}));
}

// Two sources whose shares are not their sizes: over many epochs every row of a source comes equally often.
TEST(Mixture, EveryRowOfASourceComesEquallyOften) {
  const Mixture mixture({{90, 1.0}, {10, 3.0}});
  std::map<int64_t, int> times;
  for (int64_t epoch = 0; epoch < 360; ++epoch)
    for (const int64_t row : epoch_of(mixture, 5, epoch)) ++times[row];
  ASSERT_EQ(times.size(), 100u);
  for (const auto& [row, count] : times) EXPECT_EQ(count, row < 90 ? 100 : 2700) << row;
}

TEST(Mixture, ASourceOfTinyWeightStillGivesARow) {
  const Mixture mixture({{10, 1.0}, {10, 1e-9}});
  EXPECT_EQ(mixture.sources()[1].epoch_rows, 1);
  EXPECT_EQ(mixture.epoch_rows(), 21);
}

}  // namespace
}  // namespace tenon
