// The smaller ops on values that can be worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/accumulate.h"
#include "ops/adamw.h"
#include "ops/column_sum.h"
#include "ops/embedding.h"
#include "ops/embedding_grad.h"
#include "ops/gather_rows.h"
#include "ops/gather_rows_grad.h"
#include "ops/global_norm.h"
#include "ops/matmul.h"
#include "ops/op_testing.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"
#include "ops/rope_table.h"
#include "ops/running_max.h"
#include "ops/sum.h"
#include "ops/swiglu.h"
#include "ops/wkv.h"
#include "ops/zero.h"

namespace tenon {
namespace {

const double kLn3 = std::log(3.0);

TEST(Matmul, EveryLayoutOfTheSameProduct) {
  const std::vector<double> a = {1, 2, 3, 4, 5, 6}, a_t = {1, 4, 2, 5, 3, 6};
  const std::vector<double> b = {7, 8, 9, 10, 11, 12}, b_t = {7, 9, 11, 8, 10, 12};
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      const auto outputs = run_op(
          {doubles(trans_a ? Shape{3, 2} : Shape{2, 3}, trans_a ? a_t : a),
           doubles(trans_b ? Shape{2, 3} : Shape{3, 2}, trans_b ? b_t : b)},
          [=](Builder& bd, Ids in) { matmul(bd, in[0], in[1], {.trans_a = trans_a, .trans_b = trans_b}); });
      EXPECT_THAT(outputs[0], near({58, 64, 139, 154}));
    }
  }
}

TEST(Matmul, AlphaScalesTheProductNotTheAddend) {
  const auto product = [](Shape addend, std::vector<double> values) {
    return run_op({doubles(Shape{2, 1}, {1, 2}), doubles(Shape{1, 2}, {3, 4}), doubles(addend, values)},
                  [](Builder& b, Ids in) { matmul(b, in[0], in[1], {.alpha = 10, .addend = in[2]}); })[0];
  };
  EXPECT_THAT(product(Shape{2, 2}, {1, 2, 3, 4}), near({31, 42, 63, 84}));
  EXPECT_THAT(product(Shape{2}, {1, 2}), near({31, 42, 61, 82}));
}

TEST(RmsNorm, DividesByTheRootMeanSquare) {
  const auto norm = [](double eps, double offset) {
    return run_op({doubles(Shape{2, 2}, {3, 4, 0, -2}), doubles(Shape{2}, {1, 2})},
                  [=](Builder& b, Ids in) { rms_norm(b, in[0], in[1], eps, offset); })[0];
  };
  const double rms0 = std::sqrt(12.5), rms1 = std::sqrt(2.0);
  EXPECT_THAT(norm(0, 0), near({3 / rms0, 8 / rms0, 0, -4 / rms1}));
  EXPECT_THAT(norm(3.5, 1), near({6.0 / 4, 12.0 / 4, 0, -6 / std::sqrt(5.5)}));
}

// A quarter turn of pair 0, none of pair 1; the fifth element passes through.
TEST(Rope, PairsByLayout) {
  const auto turned = [](bool interleaved, bool inverse) {
    return run_op({doubles(Shape{1, 1, 5}, {1, 2, 3, 4, 5}), given(DType::f32, Shape{1, 2, 2}, {0, 1, 1, 0})},
                  [=](Builder& b, Ids in) { rope(b, in[0], in[1], interleaved, inverse); })[0];
  };
  EXPECT_THAT(turned(false, false), near({-3, 2, 1, 4, 5}));
  EXPECT_THAT(turned(true, false), near({-2, 1, 3, 4, 5}));
  EXPECT_THAT(turned(false, true), near({3, 2, -1, 4, 5}));
  EXPECT_THAT(turned(true, true), near({2, -1, 3, 4, 5}));
}

TEST(RopeTable, CosinesThenSines) {
  const auto table = run_op({given_ids({0, 3}), given(DType::f32, Shape{2}, {0.5, 0.25})},
                            [](Builder& b, Ids in) { rope_table(b, in[0], in[1], 2.0); });
  // 2 cos 1.5, 2 cos 0.75, 2 sin 1.5, 2 sin 0.75.
  EXPECT_THAT(table[0], near({2, 2, 0, 0, 0.14147440333540582, 1.4633777377476417, 1.9949899732081088,
                              1.3632775200466682}));
}

TEST(SwiGlu, SiluOfTheGateTimesUp) {  // sigmoid(ln 3) = 3/4
  const auto outputs = run_op({doubles(Shape{3}, {kLn3, -kLn3, 0}), doubles(Shape{3}, {4, 4, 9})},
                              [](Builder& b, Ids in) { swiglu(b, in[0], in[1]); });
  EXPECT_THAT(outputs[0], near({3 * kLn3, -kLn3, 0}));
}

TEST(Rows, GatherAndAddBack) {
  const CaseInput ids = given_ids({2, 0, 2});
  const CaseInput table = doubles(Shape{3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(run_op({table, ids}, [](Builder& b, Ids in) { embedding(b, in[0], in[1], DType::f64); })[0],
              near({5, 6, 1, 2, 5, 6}));
  EXPECT_THAT(run_op({table, ids}, [](Builder& b, Ids in) { gather_rows(b, in[0], in[1]); })[0],
              near({5, 6, 1, 2, 5, 6}));
  EXPECT_THAT(run_op({table, ids}, [](Builder& b, Ids in) { embedding_grad(b, in[0], in[1], 4); })[0],
              near({3, 4, 0, 0, 6, 8, 0, 0}));
  EXPECT_THAT(run_op({table, ids}, [](Builder& b, Ids in) { gather_rows_grad(b, in[0], in[1], 4); })[0],
              near({3, 4, 0, 0, 6, 8, 0, 0}));
}

TEST(Sums, AllColumnsAndNorm) {
  const CaseInput x = doubles(Shape{2, 1, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(run_op({x}, [](Builder& b, Ids in) { sum(b, in[0]); })[0], near({21}));
  EXPECT_THAT(run_op({x}, [](Builder& b, Ids in) { column_sum(b, in[0]); })[0], near({5, 7, 9}));
  EXPECT_THAT(run_op({given(DType::f32, Shape{2}, {3, -4}), given(DType::f32, Shape{1, 1}, {12})},
                     [](Builder& b, Ids in) {
                       global_norm(b, {in[0], in[1]});
                     })[0],
              near({13}));
}

TEST(Updates, AccumulateAndZero) {
  const CaseInput total = given(DType::f32, Shape{2}, {1, 2});
  EXPECT_THAT(run_op({total, doubles(Shape{2}, {10, 20})},
                     [](Builder& b, Ids in) { accumulate(b, in[0], in[1]); })[0],
              near({11, 22}));
  EXPECT_THAT(run_op({total}, [](Builder& b, Ids in) { zero(b, in[0]); })[0], near({0, 0}));
}

// The first step: the bias corrections undo the decay of the moments, so the step is lr * g / (|g| + eps).
TEST(AdamW, FirstStepByHand) {
  const auto step = [](const AdamWOptions& options, double grad_norm = 4) {
    const auto one = [](double value) { return given(DType::f32, Shape{1}, {value}); };
    return run_op(
        {one(2), one(-0.5), one(0), one(0), one(grad_norm), given(DType::f32, Shape{3}, {0.125, 0.5, 0.25})},
        [&](Builder& b, Ids in) {
          adamw(b, {.param = in[0], .m = in[2], .v = in[3]}, in[1], in[4], in[5], options);
        });
  };
  AdamWOptions options{.beta1 = 0.5, .beta2 = 0.75, .eps = 0.5, .weight_decay = 0.5};
  auto outputs = step(options);  // 2 (1 - 1/16) + 1/8 * 0.5 / (0.5 + 0.5)
  EXPECT_THAT(outputs[0], near({1.875 + 0.0625}));
  EXPECT_THAT(outputs[1], near({-0.25}));
  EXPECT_THAT(outputs[2], near({0.0625}));
  options.max_norm = 1.0;  // the gradient is scaled by 1 / 4.000001
  outputs = step(options);
  EXPECT_THAT(outputs[1], near({-0.25 / 4.000001}));
  options.max_norm = 5.0;  // not clipped
  EXPECT_THAT(step(options)[1], near({-0.25}));
  for (const double grad_norm : {INFINITY, -INFINITY, NAN}) {
    outputs = step(options, grad_norm);
    EXPECT_THAT(outputs[0], near({2}));
    EXPECT_THAT(outputs[1], near({0}));
    EXPECT_THAT(outputs[2], near({0}));
  }
}

CaseInput floats(Shape shape, std::vector<double> values) {
  return given(DType::f32, shape, std::move(values));
}

// One channel that decays by half, whose own token weighs three times as much.
std::vector<double> wkv_of(double key_offset) {
  std::vector<double> keys = {0, std::log(2.0), 0};
  for (double& key : keys) key += key_offset;
  return run_op({floats(Shape{3, 1}, keys), floats(Shape{3, 1}, {4, 1, 2}),
                 floats(Shape{1}, {-std::log(2.0)}), floats(Shape{1}, {kLn3}), given_ids({0, 0, 0})},
                [](Builder& b, Ids in) {
                  wkv(b, {in[0], in[1], in[2], in[3]}, in[4]);
                })[0];
}

TEST(Wkv, IsTheWeightedMeanOfValues) {
  EXPECT_THAT(wkv_of(0), near({4, (4 + 6 * 1) / (1.0 + 6), (2 + 2 * 1 + 3 * 2) / (0.5 + 2 + 3)}, 1e-6));
}

TEST(Wkv, KeysThatShareAnOffsetGiveTheSame) {
  EXPECT_THAT(wkv_of(1000), near(wkv_of(0), 1e-4));
  EXPECT_THAT(wkv_of(-1000), near(wkv_of(0), 1e-4));
}

TEST(RunningMax, CarriesTheLargestExponent) {
  const auto outputs =
      run_op({floats(Shape{3, 1}, {-1, -1, -2}), floats(Shape{3, 1}, {-3, 5, 1}), given_ids({0, 0, 2})},
             [](Builder& b, Ids in) { running_max(b, in[0], in[1], in[2]); });
  EXPECT_THAT(outputs[0], near({-1, -1, -2, 5, -2, 1}));
}

TEST(RunningMax, GradientsFollowWhatWasLargest) {
  const auto outputs = run_op({floats(Shape{3, 2, 1}, {-1, -1, -2, 5, -2, 1}),
                               floats(Shape{3, 2, 1}, {1, 1, 1, 1, 1, 1}), given_ids({0, 0, 2})},
                              [](Builder& b, Ids in) { running_max_grad(b, in[0], in[1], in[2]); });
  EXPECT_THAT(outputs[0], near({3, 1, 1}));
  EXPECT_THAT(outputs[1], near({0, 1, 1}));
}

}  // namespace
}  // namespace tenon
