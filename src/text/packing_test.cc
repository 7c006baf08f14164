#include "text/packing.h"

#include <gtest/gtest.h>

#include <vector>

namespace tenon {
namespace {

using Ints = std::vector<int32_t>;
constexpr int32_t kNo = kUntrained;

TEST(Packing, HandWorkedPackOfTwoRows) {
  MicroBatch batch = empty_batch(8);
  ASSERT_TRUE(append_example(batch, {{11, 12, 13, 14}, {kNo, kNo, 13, 14}}, 5));
  ASSERT_TRUE(append_example(batch, {{21, 22, 23}, {21, kNo, 23}}, 2));
  EXPECT_EQ(batch.ids, (Ints{11, 12, 13, 14, 21, 22, 23, 0}));
  EXPECT_EQ(batch.positions, (Ints{0, 1, 2, 3, 0, 1, 2, 0}));
  EXPECT_EQ(batch.sequence_begin, (Ints{0, 0, 0, 0, 4, 4, 4, 7}));
  // The trained first token of the second row is predicted by nothing, least of all by the first row.
  EXPECT_EQ(batch.labels, (Ints{kNo, 13, 14, kNo, kNo, 23, kNo, kNo}));
  EXPECT_EQ(batch.used_tokens, 7);
  EXPECT_EQ(batch.trained_tokens, 3);
  ASSERT_EQ(batch.rows.size(), 2u);
  EXPECT_EQ(batch.rows[0].row, 5);
  EXPECT_EQ(batch.rows[0].trained_tokens, 2);
  EXPECT_EQ(batch.rows[1].row, 2);
  EXPECT_EQ(batch.rows[1].begin, 4);
  EXPECT_EQ(batch.rows[1].tokens, 3);
  EXPECT_EQ(batch.rows[1].trained_tokens, 1);
}

TEST(Packing, WhatDoesNotFitChangesNothing) {
  MicroBatch batch = empty_batch(4);
  ASSERT_TRUE(append_example(batch, {{1, 2, 3}, {kNo, 2, 3}}, 0));
  const MicroBatch before = batch;
  EXPECT_FALSE(append_example(batch, {{4, 5}, {kNo, 5}}, 1));
  EXPECT_EQ(batch.ids, before.ids);
  EXPECT_EQ(batch.labels, before.labels);
  EXPECT_EQ(batch.rows.size(), 1u);
  EXPECT_TRUE(append_example(batch, {{6}, {kNo}}, 2));
  EXPECT_EQ(batch.used_tokens, 4);
}

TEST(Packing, EmptyBatchIsOneTokenSequences) {
  const MicroBatch batch = empty_batch(3);
  EXPECT_EQ(batch.sequence_begin, (Ints{0, 1, 2}));
  EXPECT_EQ(batch.positions, (Ints{0, 0, 0}));
  EXPECT_EQ(batch.labels, (Ints{kNo, kNo, kNo}));
}

TEST(TokenizedExample, TheFirstTokenNeverCounts) {
  EXPECT_EQ((TokenizedExample{{7, 8}, {7, 8}}.trained_tokens()), 1);
  EXPECT_EQ((TokenizedExample{{7}, {7}}.trained_tokens()), 0);
  EXPECT_EQ((TokenizedExample{{7, 8, 9}, {kNo, kNo, 9}}.trained_tokens()), 1);
  EXPECT_EQ(TokenizedExample{}.trained_tokens(), 0);
}

}  // namespace
}  // namespace tenon
