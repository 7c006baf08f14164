// Fused ops become what they stand for, and nothing else changes.
#include "passes/expand_ops.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/verify.h"
#include "ops/matmul_low_rank.h"
#include "ops/scale.h"

namespace tenon {
namespace {

TEST(ExpandOps, ReplacesOpsWithoutAKernelByTheirCompositions) {
  Program program;
  Builder b(program);
  const auto matrix = [&](const char* name, int64_t rows, int64_t columns) {
    return b.add_static(Role::input, name, {DType::f32, Shape{rows, columns}});
  };
  b.set_name("layer");
  const ValueId y =
      matmul_low_rank(b, {matrix("x", 3, 4), matrix("w", 4, 5), matrix("low", 3, 2), matrix("up", 2, 5)}, {});
  b.mark_output(scale(b, y, 2.0), "out");

  const Program kept = expand_ops(program, [](std::string_view) { return true; });
  EXPECT_EQ(program_text(kept), program_text(program));

  const Program expanded = expand_ops(program, [](std::string_view op) { return op != "matmul_low_rank"; });
  ASSERT_TRUE(verify(expanded).ok()) << verify(expanded).error().text();
  ASSERT_EQ(expanded.ops.size(), 3u);
  EXPECT_EQ(expanded.ops[0].def->name, "matmul");
  EXPECT_EQ(expanded.ops[1].def->name, "matmul");
  EXPECT_EQ(expanded.ops[1].name, "layer");
  EXPECT_EQ(expanded.ops[2].def->name, "scale");
  EXPECT_TRUE(expanded.find("out").valid());
}

}  // namespace
}  // namespace tenon
