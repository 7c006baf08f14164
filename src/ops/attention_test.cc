// Attention by hand: keys are logarithms, so that exp(score) is 1, 2 and 3.
#include "ops/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/biased_attention.h"
#include "ops/cache_write.h"
#include "ops/op_testing.h"
#include "ops/paged_attention.h"

namespace tenon {
namespace {

const double kLn2 = std::log(2.0), kLn3 = std::log(3.0), kLn5 = std::log(5.0);

// Three tokens of one sequence and one of the next; head 0 weighs keys by 1, 2, 3, head 1 evenly.
ReferenceValues four_tokens(const AttentionOptions& options) {
  return run_op(
      {doubles(Shape{4, 2, 1}, {1, 0, 1, 0, 1, 0, 1, 0}), doubles(Shape{4, 1, 1}, {0, kLn2, kLn3, kLn5}),
       doubles(Shape{4, 1, 1}, {6, 12, 24, 7}), given_ids({0, 0, 0, 3})},
      [&](Builder& b, Ids in) { attention(b, in[0], in[1], in[2], in[3], options); });
}

TEST(Attention, IsCausalWithinSequences) {
  const auto outputs = four_tokens({});
  EXPECT_THAT(outputs[0], near({6, 6, 10, 9, 17, 14, 7, 7}));
  EXPECT_THAT(outputs[1], near({0, 0, kLn3, kLn2, std::log(6.0), kLn3, kLn5, 0}));
}

TEST(Attention, WindowLimitsReach) {
  const auto outputs = four_tokens({.window = 2});
  EXPECT_THAT(outputs[0], near({6, 6, 10, 9, 19.2, 18, 7, 7}));
  EXPECT_THAT(outputs[1], near({0, 0, kLn3, kLn2, kLn5, kLn2, kLn5, 0}));
}

// tanh(ln 3) = 0.8 and tanh(ln 2) = 0.6 exactly.
TEST(Attention, SoftcapSquashesScaledScores) {
  const auto outputs = four_tokens({.scale = 2.0, .softcap = 2.0});
  const double p1 = std::exp(2 * 0.6), p2 = std::exp(2 * 0.8);
  EXPECT_NEAR(outputs[0][4], (6 + 12 * p1 + 24 * p2) / (1 + p1 + p2), 1e-12);
  EXPECT_NEAR(outputs[1][4], std::log(1 + p1 + p2), 1e-12);
}

TEST(Attention, HeadsShareKvHeadsInGroups) {
  const auto outputs = run_op({doubles(Shape{1, 4, 1}, {1, 2, 3, 4}), doubles(Shape{1, 2, 1}, {10, 20}),
                               doubles(Shape{1, 2, 1}, {-1, -2}), given_ids({0})},
                              [&](Builder& b, Ids in) { attention(b, in[0], in[1], in[2], in[3], {}); });
  EXPECT_THAT(outputs[0], near({-1, -1, -2, -2}));
  EXPECT_THAT(outputs[1], near({10, 20, 60, 80}));
}

// Queries are zero, so that scores are the learned ones of distances 0 and 1 alone; keys further off have 0.
ReferenceValues learned_scores(bool sinks) {
  std::vector<CaseInput> inputs = {doubles(Shape{4, 1, 1}, {0, 0, 0, 0}),
                                   doubles(Shape{4, 1, 1}, {1, 2, 3, 4}),
                                   doubles(Shape{4, 1, 1}, {6, 12, 24, 7}), given_ids({0, 0, 0, 3})};
  if (sinks) inputs.push_back(given(DType::f32, Shape{4, 1}, {0, 2 * kLn2, kLn2 + kLn3, kLn5}));
  inputs.push_back(doubles(Shape{4, 1, 2}, {0, 9, 0, kLn3, kLn2, 0, kLn5, 9}));
  return run_op(inputs, [&](Builder& b, Ids in) {
    const AttentionBiases biases{sinks ? in[4] : ValueId{}, {}, in.back()};
    biased_attention(b, in[0], in[1], in[2], in[3], biases, {});
  });
}

TEST(BiasedAttention, AddsLearnedScoresByDistance) {
  const auto outputs = learned_scores(false);
  EXPECT_THAT(outputs[0], near({6, 7.5, 16.5, 7}));
  EXPECT_THAT(outputs[1], near({0, 2 * kLn2, 2 * kLn2, kLn5}));
}

TEST(BiasedAttention, SinksMayDifferByToken) {
  EXPECT_THAT(learned_scores(true)[0], near({3, 3.75, 6.6, 3.5}, 1e-6));
}

// The rows of one sequence, written to pages out of order, read back from there.
TEST(PagedAttention, EqualsAttentionOverTheSameTokens) {
  const int64_t tokens = 9, heads = 4, kv_heads = 2, dim = 6;
  Program program;
  Builder builder(program);
  std::map<std::string, std::vector<double>, std::less<>> statics;
  const auto input = [&](const char* name, CaseInput values) {
    OpCase op_case;
    op_case.inputs = {values};
    statics[name] = case_inputs(op_case, static_cast<uint64_t>(name[0]))[0];
    return builder.add_static(Role::input, name, values.type);
  };
  const ValueId q = input("q", normal(DType::f32, Shape{tokens, heads, dim}));
  const ValueId k = input("k", normal(DType::f32, Shape{tokens, kv_heads, dim}));
  const ValueId v = input("v", normal(DType::f32, Shape{tokens, kv_heads, dim}));
  const ValueId begin = input("begin", given_ids(std::vector<double>(tokens, 0)));
  // Pages 3, 0, 2 of four tokens each, as the second stream of the table.
  const ValueId slots = input("slots", given_ids({12, 13, 14, 15, 0, 1, 2, 3, 8}));
  const ValueId table = input("table", given(DType::i32, Shape{2, 3}, {-1, -1, -1, 3, 0, 2}));
  const ValueId stream = input("stream", given_ids(std::vector<double>(tokens, 1)));
  const ValueId positions = input("positions", given_ids({0, 1, 2, 3, 4, 5, 6, 7, 8}));
  const Type cache{DType::f32, Shape{4, 4, kv_heads, dim}};
  const ValueId k_cache = builder.add_static(Role::cache, "k_cache", cache);
  const ValueId v_cache = builder.add_static(Role::cache, "v_cache", cache);
  const AttentionOptions options{.scale = 0.4, .window = 5, .softcap = 3.0};
  const ValueId expected = attention(builder, q, k, v, begin, options).out;
  const ValueId paged = paged_attention(builder,
                                        {.q = q,
                                         .k_cache = cache_write(builder, k_cache, k, slots),
                                         .v_cache = cache_write(builder, v_cache, v, slots),
                                         .page_table = table,
                                         .stream = stream,
                                         .positions = positions},
                                        options);
  const ReferenceValues values = evaluate_reference(program, statics);
  EXPECT_THAT(values[paged.index], near(values[expected.index]));
}

TEST(PagedAttention, ATokenWithoutAStreamGivesZeros) {
  const auto outputs = run_op(
      {doubles(Shape{2, 1, 1}, {1, 1}), doubles(Shape{1, 1, 1, 1}, {1}), doubles(Shape{1, 1, 1, 1}, {5}),
       given(DType::i32, Shape{1, 1}, {0}), given_ids({-1, 0}), given_ids({0, 0})},
      [&](Builder& b, Ids in) {
        paged_attention(b, {in[0], in[1], in[2], in[3], in[4], in[5]}, {});
      });
  EXPECT_THAT(outputs[0], near({0, 5}));
}

TEST(CacheWrite, WritesNamedSlotsAlone) {
  const auto outputs = run_op({doubles(Shape{2, 2, 1, 2}, {0, 1, 2, 3, 4, 5, 6, 7}),
                               doubles(Shape{3, 1, 2}, {10, 11, 20, 21, 30, 31}), given_ids({3, -1, 0})},
                              [](Builder& b, Ids in) { cache_write(b, in[0], in[1], in[2]); });
  EXPECT_THAT(outputs[0], near({30, 31, 2, 3, 4, 5, 10, 11}));
}

}  // namespace
}  // namespace tenon
