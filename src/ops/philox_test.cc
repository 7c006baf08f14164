#include "ops/philox.h"

#include <gtest/gtest.h>

#include "ops/dropout.h"
#include "ops/op_testing.h"

namespace tenon {
namespace {

using Words = std::array<uint32_t, 4>;

// The known answers published with Random123 (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t f = 0xffffffff;
  EXPECT_EQ(philox4x32({f, f, f, f}, {f, f}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, ABlockIsTheCounterOfItsHalves) {
  EXPECT_EQ(philox_block({0xa4093822, 0x299f31d0}, 0x0370734413198a2e, 0x85a308d3243f6a88),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::vector<double> mask(int64_t n, double rate, int64_t stream, std::vector<double> seed = {5, -6}) {
  return run_op({doubles(Shape{n}, std::vector<double>(n, 1.0)), given_ids(std::move(seed))},
                [&](Builder& b, Ids in) { dropout(b, in[0], in[1], rate, stream); })[0];
}

TEST(Dropout, KeepsAndScales) {
  EXPECT_THAT(mask(1000, 0.0, 1), testing::Each(1.0));
  const auto dropped = mask(40000, 0.25, 1);
  EXPECT_THAT(dropped, testing::Each(testing::AnyOf(0.0, testing::DoubleNear(4.0 / 3.0, 1e-15))));
  // Five standard deviations of a binomial count: sqrt(40000 * 0.25 * 0.75) = 86.6.
  EXPECT_NEAR(std::count(dropped.begin(), dropped.end(), 0.0), 10000, 433);
}

TEST(Dropout, IsAFunctionOfSeedStreamAndIndexAlone) {
  const auto all = mask(4000, 0.5, 9);
  EXPECT_EQ(mask(4000, 0.5, 9), all);
  EXPECT_EQ(mask(37, 0.5, 9), std::vector<double>(all.begin(), all.begin() + 37));
  EXPECT_NE(mask(4000, 0.5, 10), all);
  EXPECT_NE(mask(4000, 0.5, 9, {5, -7}), all);
}

// Word 0 of block 0 of the all-zero counter and key is 0x6627e8d5, 0.39904 of 2^32.
TEST(Dropout, TheFirstElementFollowsTheFirstKnownWord) {
  EXPECT_EQ(mask(1, 0.399, 0, {0, 0})[0], 1.0 / (1 - 0.399));
  EXPECT_EQ(mask(1, 0.3991, 0, {0, 0})[0], 0.0);
}

}  // namespace
}  // namespace tenon
