// The head by hand: weights are logarithms, so that exp(z) is 1, 2 and 3 of 6.
#include "ops/linear_cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/linear_cross_entropy_grad_hidden.h"
#include "ops/linear_cross_entropy_grad_weight.h"
#include "ops/op_testing.h"

namespace tenon {
namespace {

const double kLn2 = std::log(2.0), kLn3 = std::log(3.0), kLn6 = std::log(6.0);

ReferenceValues head(std::vector<double> hidden, std::vector<double> weight, std::vector<double> labels,
                     const LinearCrossEntropyOptions& options) {
  const auto tokens = static_cast<int64_t>(hidden.size()), vocab = static_cast<int64_t>(weight.size());
  return run_op({doubles(Shape{tokens, 1}, hidden), doubles(Shape{vocab, 1}, weight), given_ids(labels)},
                [&](Builder& b, Ids in) { linear_cross_entropy(b, in[0], in[1], in[2], options); });
}

TEST(LinearCrossEntropy, LossLseAndPrediction) {
  const auto outputs = head({1, 1, 1, -1}, {0, kLn2, kLn3}, {1, -100, 2, 0}, {});
  EXPECT_THAT(outputs[0], near({kLn3, 0, kLn2, std::log(11.0 / 6)}));
  EXPECT_THAT(outputs[1], near({kLn6, 0, kLn6, std::log(11.0 / 6)}));
  EXPECT_THAT(outputs[2], near({2, -1, 2, 0}));
}

TEST(LinearCrossEntropy, ScaleThenSoftcap) {
  EXPECT_NEAR(head({1}, {0, kLn2, kLn3}, {1}, {.logit_scale = 2.0})[0][0], std::log(14.0 / 4), 1e-12);
  // tanh(ln 3) = 0.8.
  EXPECT_NEAR(head({1}, {0, 0.5 * kLn3}, {1}, {.logit_scale = 4.0, .softcap = 2.0})[0][0],
              std::log1p(std::exp(-1.6)), 1e-12);
}

TEST(LinearCrossEntropy, EqualLogitsPredictTheLowestIndex) {
  EXPECT_EQ(head({1}, {0, 2, 1, 2}, {0}, {})[2][0], 1);
}

// softmax = (1, 2, 3) / 6, label 0, dloss 6: dz = (-5, 2, 3); the second token is untrained.
TEST(LinearCrossEntropyGrad, SoftmaxLessTarget) {
  const auto inputs = [&] {
    return std::vector<CaseInput>{doubles(Shape{2, 1}, {1, 5}), doubles(Shape{3, 1}, {0, kLn2, kLn3}),
                                  given_ids({0, -100}), given(DType::f32, Shape{2}, {kLn6, 0}),
                                  given(DType::f32, Shape{2}, {6, 6})};
  };
  const auto hidden = run_op(inputs(), [](Builder& b, Ids in) {
    linear_cross_entropy_grad_hidden(b, in[0], in[1], in[2], in[3], in[4], {});
  });
  EXPECT_THAT(hidden[0], near({2 * kLn2 + 3 * kLn3, 0}, 1e-6));
  const auto weight = run_op(inputs(), [](Builder& b, Ids in) {
    linear_cross_entropy_grad_weight(b, in[0], in[1], in[2], in[3], in[4], {});
  });
  EXPECT_THAT(weight[0], near({-5, 2, 3}, 1e-6));
}

}  // namespace
}  // namespace tenon
