#include "ops/interpret.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ops/accumulate.h"
#include "ops/mul.h"
#include "ops/op_testing.h"
#include "ops/sum.h"

namespace tenon {
namespace {

TEST(Interpret, RunsAProgramWithConstantsAndState) {
  Program program;
  Builder b(program);
  const ValueId x = b.add_static(Role::input, "x", Type{DType::f32, Shape{3}});
  const ValueId factor = b.add_constant("factor", Shape{3}, {1, 10, 100});
  const ValueId total = b.add_static(Role::gradient_sum, "total", Type{DType::f32, Shape{3}});
  const ValueId product = mul(b, x, factor);
  const ValueId updated = accumulate(b, total, product);
  const ValueId again = accumulate(b, updated, product);
  const ValueId result = sum(b, again);
  ReferenceValues values = evaluate_reference(program, {{"x", {1, 2, 3}}});
  EXPECT_THAT(values[static_cast<size_t>(updated.index)], near({1, 20, 300}));
  EXPECT_THAT(values[static_cast<size_t>(result.index)], near({642}));
  values = evaluate_reference(program, {{"x", {1, 2, 3}}, {"total", {0.5, 0, 0}}});
  EXPECT_THAT(values[static_cast<size_t>(result.index)], near({642.5}));
}

TEST(InterpretDeathTest, MissingOrMisfittingStaticsAreBugs) {
  Program program;
  Builder b(program);
  sum(b, b.add_static(Role::weight, "w", Type{DType::f32, Shape{3}}));
  EXPECT_DEATH(evaluate_reference(program, {}), "w");
  EXPECT_DEATH(evaluate_reference(program, {{"w", {1, 2}}}), "not as long as its type");
}

}  // namespace
}  // namespace tenon
