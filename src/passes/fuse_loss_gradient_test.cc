// The fused loss against the two ops it stands for.
#include "passes/fuse_loss_gradient.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ir/verify.h"
#include "ops/fill.h"
#include "ops/interpret.h"
#include "ops/linear_cross_entropy.h"
#include "ops/linear_cross_entropy_with_grad.h"
#include "ops/matmul.h"
#include "passes/differentiate.h"

namespace tenon {
namespace {

constexpr int64_t kTokens = 4, kHidden = 3, kVocab = 5;

// hidden = x · w^T, the loss of a head on it, and the gradients of the loss by the named weights as outputs.
Program program_with_gradients(const std::vector<std::string>& wrt, double softcap = 0) {
  Program program;
  Builder b(program);
  const ValueId x = b.add_static(Role::input, "x", {DType::f32, Shape{kTokens, kHidden}});
  const ValueId w = b.add_static(Role::weight, "w", {DType::f32, Shape{kHidden, kHidden}});
  const ValueId head = b.add_static(Role::weight, "head", {DType::f32, Shape{kVocab, kHidden}});
  const ValueId labels = b.add_static(Role::input, "labels", {DType::i32, Shape{kTokens}});
  const auto out = linear_cross_entropy(b, linear(b, x, w), head, labels, {.softcap = softcap});
  b.mark_output(out.loss, "loss");
  b.mark_output(out.predicted, "predicted");
  const ValueId scale = b.add_static(Role::input, "scale", {DType::f32, Shape{1}});
  b.set_role(Role::gradient);
  const ValueId seed = fill(b, scale, Shape{kTokens});
  std::vector<ValueId> ids;
  for (const std::string& name : wrt) ids.push_back(program.find(name));
  const std::vector<ValueId> gradients = differentiate(program, out.loss, seed, ids);
  Builder names(program);
  for (size_t i = 0; i < wrt.size(); ++i) names.mark_output(gradients[i], "grad." + wrt[i]);
  EXPECT_TRUE(verify(program).ok()) << verify(program).error().text();
  return program;
}

bool has_fused_op(const Program& program) {
  return std::any_of(program.ops.begin(), program.ops.end(),
                     [](const Op& op) { return op.def == &linear_cross_entropy_with_grad_op(); });
}

TEST(FuseLossGradient, KeepsLossPredictionsAndGradients) {
  const Program program = program_with_gradients({"w"});
  const Program fused = fuse_loss_gradient(program);
  ASSERT_TRUE(verify(fused).ok()) << verify(fused).error().text();
  EXPECT_TRUE(has_fused_op(fused));
  EXPECT_EQ(fused.ops.size(), program.ops.size() - 1);
  std::map<std::string, std::vector<double>, std::less<>> statics = {{"labels", {3, -100, 0, 4}},
                                                                     {"scale", {0.5}}};
  const std::map<std::string, int64_t> sizes = {
      {"x", kTokens * kHidden}, {"w", kHidden * kHidden}, {"head", kVocab * kHidden}};
  for (const auto& [name, size] : sizes) {
    for (int64_t i = 0; i < size; ++i)
      statics[name].push_back(static_cast<double>((i * 37 + 11) % 17) / 8 - 1);
  }
  const ReferenceValues plain = evaluate_reference(program, statics);
  const ReferenceValues together = evaluate_reference(fused, statics);
  for (const char* name : {"loss", "predicted", "grad.w"}) {
    EXPECT_EQ(plain[static_cast<size_t>(program.find(name).index)],
              together[static_cast<size_t>(fused.find(name).index)])
        << name;
  }
}

TEST(FuseLossGradient, LeavesATrainedHeadAndACappedOneAlone) {
  EXPECT_FALSE(has_fused_op(fuse_loss_gradient(program_with_gradients({"w", "head"}))));
  EXPECT_FALSE(has_fused_op(fuse_loss_gradient(program_with_gradients({"w"}, 2.0))));
}

}  // namespace
}  // namespace tenon
