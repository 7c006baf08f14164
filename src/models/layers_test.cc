// Norms that goldens do not reach the limits of.
#include "models/layers.h"

#include <gmock/gmock.h>

#include "ops/op_testing.h"

namespace tenon {
namespace {

// Two heads of two elements of two tokens, weighed by 1, 1 and 10, 0.1, and cut to a length of 2.5.
TEST(Clip, CutsLongRowsToTheLimitAndLeavesOthersAsTheyAre) {
  Program program;
  Builder b(program);
  ModelSpec spec;
  const ForwardOptions options{.tokens = 2};
  ForwardContext c{b, spec, options};
  NormSpec norm{NormKind::clip, "norm", 2};
  norm.heads = 2;
  norm.limit = 2.5;
  const ValueId x = b.add_static(Role::input, "x", {DType::f32, Shape{2, 2, 2}});
  const ValueId y = apply(c, norm, x);
  const auto values =
      evaluate_reference(program, {{"x", {3, 4, 0, 0, 0.3, 0.4, 0.3, 40}}, {"norm.weight", {1, 1, 10, 0.1}}});
  EXPECT_THAT(values[y.index], near({1.5, 2, 0, 0, 0.3, 0.4, 1.5, 2}, 1e-6));
}

}  // namespace
}  // namespace tenon
