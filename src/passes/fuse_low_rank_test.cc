// The fused branch against the two products it stands for.
#include "passes/fuse_low_rank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ir/verify.h"
#include "ops/interpret.h"
#include "ops/matmul.h"
#include "ops/matmul_low_rank.h"

namespace tenon {
namespace {

constexpr int64_t kRows = 64, kIn = 6, kOut = 5, kRank = 2;

int64_t fused_ops(const Program& program) {
  return std::count_if(program.ops.begin(), program.ops.end(),
                       [](const Op& op) { return op.def == &matmul_low_rank_op(); });
}

struct Layer {
  int64_t rows = kRows;
  bool base_first = true;
  bool addend = false;
  bool base_read_twice = false;
};

// y = x · w^T + 0.5 * (low · up^T), as two products of which the second takes the first as addend.
Program layer_program(const Layer& layer) {
  Program program;
  Builder b(program);
  const auto matrix = [&](const char* name, int64_t rows, int64_t columns) {
    return b.add_static(Role::input, name, {DType::f32, Shape{rows, columns}});
  };
  const ValueId x = matrix("x", layer.rows, kIn), w = matrix("w", kOut, kIn);
  const ValueId low = matrix("low", layer.rows, kRank), up = matrix("up", kOut, kRank);
  const ValueId more = layer.addend ? matrix("more", layer.rows, kOut) : ValueId{};
  const auto base = [&](ValueId addend) { return matmul(b, x, w, {.trans_b = true, .addend = addend}); };
  const auto branch = [&](ValueId addend) {
    return matmul(b, low, up, {.trans_b = true, .alpha = 0.5, .addend = addend});
  };
  const ValueId first = layer.base_first ? base(more) : branch(more);
  b.mark_output(layer.base_first ? branch(first) : base(first), "y");
  if (layer.base_read_twice) b.mark_output(matmul(b, first, up, {}), "z");
  return program;
}

std::vector<double> output(const Program& program, std::string_view name) {
  std::map<std::string, std::vector<double>, std::less<>> statics;
  for (const Value& value : program.values) {
    if (value.producer.valid()) continue;
    for (int64_t i = 0; i < value.type.elements(); ++i) {
      statics[value.name].push_back(static_cast<double>((i * 29 + 7) % 23) / 8 - 1);
    }
  }
  return evaluate_reference(program, statics)[static_cast<size_t>(program.find(name).index)];
}

TEST(FuseLowRank, JoinsBothOrdersWithAndWithoutAnAddend) {
  for (const bool base_first : {true, false}) {
    for (const bool addend : {false, true}) {
      const Program program = layer_program({.base_first = base_first, .addend = addend});
      const Program fused = fuse_low_rank(program);
      ASSERT_TRUE(verify(fused).ok()) << verify(fused).error().text();
      EXPECT_EQ(fused_ops(fused), 1);
      EXPECT_EQ(fused.ops.size(), 1u);
      EXPECT_EQ(fused.ops[0].attrs.real("alpha"), 0.5);
      const std::vector<double> want = output(program, "y"), got = output(fused, "y");
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12);
    }
  }
}

TEST(FuseLowRank, LeavesDecodingAndSharedSumsAlone) {
  EXPECT_EQ(fused_ops(fuse_low_rank(layer_program({.rows = 1}))), 0);
  EXPECT_EQ(fused_ops(fuse_low_rank(layer_program({.base_read_twice = true}))), 0);
}

}  // namespace
}  // namespace tenon
