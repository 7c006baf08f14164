// Choices of keys and entries, and mixes of streams, against values worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/block_top_k.h"
#include "ops/entry_ids.h"
#include "ops/entry_pool.h"
#include "ops/mix_rows.h"
#include "ops/ngram_ids.h"
#include "ops/op_testing.h"
#include "ops/sinkhorn.h"

namespace tenon {
namespace {

using testing::ElementsAre;

TEST(BlockTopK, OwnBlockFirstThenTheBestOfTheOthers) {
  // Keys 3, 1 | 9, 0 | 2: for the last token, blocks {0, 1}, {2, 3} and its own {4}.
  const auto out = run_op(
      {doubles(Shape{5, 1, 1}, {1, 1, 1, 1, 1}), doubles(Shape{5, 1, 1}, {3, 1, 9, 0, 2}),
       given_ids({0, 0, 0, 0, 0})},
      [](Builder& b, Ids in) { block_top_k(b, in[0], in[1], in[2], {.n = 2, .block = 2, .local = 1}); });
  const std::vector<double> last(out[0].end() - 4, out[0].end());
  EXPECT_THAT(last, ElementsAre(2, 3, 4, -1));
}

TEST(EntryIds, AreTheTokensOfAnEntryAndThoseAfterTheLast) {
  const CaseInput entry = given(DType::i32, Shape{1, 1}, {3});
  const auto blocks = run_op({entry, given_ids({6})}, [](Builder& b, Ids in) {
    block_ids(b, in[0], {in[1], {}}, 2);
  });
  EXPECT_THAT(blocks[0], ElementsAre(2, 3, 6));
  const auto window = run_op({entry, given_ids({6})}, [](Builder& b, Ids in) {
    window_entry_ids(b, in[0], {in[1], {}}, 2);
  });
  EXPECT_THAT(window[0], ElementsAre(10, 12, 7));
}

TEST(EntryPool, EqualGatesGiveTheMeanOfBothStrides) {
  // Entries at tokens 1 and 3: the second half of the columns of their own stride, the first half of the one
  // before.
  const auto out = run_op(
      {doubles(Shape{4, 2}, {10, 1, 20, 2, 30, 3, 40, 4}), doubles(Shape{4, 2}, std::vector<double>(8, 0)),
       given(DType::f32, Shape{2, 2}, {0, 0, 0, 0}), given_ids({0, 0, 0, 0})},
      [](Builder& b, Ids in) {
        entry_pool(b, {in[0], in[1], in[2]}, in[3], 2);
      });
  EXPECT_THAT(out[0], near({0, (1 + 2) / 2.0, 0, (10 + 20 + 3 + 4) / 4.0}));
}

TEST(MixRows, SumsRowsByTheirWeights) {
  const std::vector<CaseInput> inputs = {doubles(Shape{1, 2, 2}, {1, 2, 10, 20}),
                                         given(DType::f32, Shape{1, 2, 2}, {1, 2, 3, 4})};
  EXPECT_THAT(run_op(inputs, [](Builder& b, Ids in) { mix_rows(b, in[0], in[1]); })[0],
              near({21, 42, 43, 86}));
  EXPECT_THAT(run_op(inputs, [](Builder& b, Ids in) { mix_rows(b, in[0], in[1], true); })[0],
              near({31, 62, 42, 84}));
}

TEST(Sinkhorn, EndsNearlyDoublyStochastic) {
  const auto out = run_op({given(DType::f32, Shape{1, 3, 3}, {2, 0, 1, 0, 1, 0, 0.5, 3, 1})},
                          [](Builder& b, Ids in) { sinkhorn(b, in[0], {.iterations = 60}); });
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(out[0][3 * i] + out[0][3 * i + 1] + out[0][3 * i + 2], 1, 1e-9) << "row " << i;
    EXPECT_NEAR(out[0][i] + out[0][3 + i] + out[0][6 + i], 1, 1e-9) << "column " << i;
  }
}

TEST(NgramIds, HashTheLastTwoTokens) {
  // 5 * 7 ^ 2 * 11 = 53, and 6 * 7 ^ 5 * 11 = 29, modulo 13; 2 ends a text.
  const auto out = run_op({given_ids({5, 6}), given_ids({0, 0})}, [](Builder& b, Ids in) {
    ngram_ids(b, in[0], in[1], {.multipliers = {7, 11}, .sizes = {13}, .heads = 1, .end = 2});
  });
  EXPECT_THAT(out[0], ElementsAre(1, 3));
}

}  // namespace
}  // namespace tenon
