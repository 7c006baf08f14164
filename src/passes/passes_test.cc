// Passes against the plain second way: the interpreter in double. A small network with what models have (a
// linear layer used twice, a residual, a gate, a norm) is differentiated, adapted, fused and recomputed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/verify.h"
#include "ops/accumulate.h"
#include "ops/add.h"
#include "ops/interpret.h"
#include "ops/matmul.h"
#include "ops/mul.h"
#include "ops/reshape.h"
#include "ops/rms_norm.h"
#include "ops/sum.h"
#include "ops/swiglu.h"
#include "passes/adapters.h"
#include "passes/differentiate.h"
#include "passes/fuse_addend.h"
#include "passes/optimiser.h"
#include "passes/recompute.h"
#include "passes/recompute_cheap.h"

namespace tenon {
namespace {

using Statics = std::map<std::string, std::vector<double>, std::less<>>;

constexpr int64_t kTokens = 3, kWidth = 4;

// Two blocks: x += down(swiglu(gate(norm(x)), up(norm(x)))); the loss is the sum of x * x.
Program network() {
  Program program;
  program.name = "network";
  Builder b(program);
  ValueId x = b.add_static(Role::input, "x", {DType::f32, Shape{kTokens, kWidth}});
  for (int32_t block = 0; block < 2; ++block) {
    b.set_block(block);
    const std::string path = "layers." + std::to_string(block);
    const auto layer = [&](const std::string& name, ValueId in) {
      const Type type{DType::f32, Shape{kWidth, kWidth}};
      const ValueId weight = b.add_static(Role::weight, path + "." + name + ".weight", type);
      b.set_name(path + "." + name);
      return linear(b, in, weight);
    };
    const ValueId norm_weight =
        b.add_static(Role::weight, path + ".norm.weight", {DType::f32, Shape{kWidth}});
    const ValueId h = rms_norm(b, x, norm_weight, 1e-5);
    const ValueId gated = swiglu(b, layer("gate", h), layer("up", h));
    x = add(b, x, layer("down", gated));
  }
  b.set_block(-1);
  b.mark_output(sum(b, mul(b, x, x)), "loss");
  return program;
}

Statics random_statics(const Program& program, uint32_t seed) {
  Statics statics;
  for (const Value& value : program.values) {
    if (value.producer.valid() || value.role == Role::constant) continue;
    std::vector<double>& data = statics[value.name];
    for (int64_t i = 0; i < value.type.elements(); ++i) {
      seed = seed * 1664525u + 1013904223u;
      data.push_back((seed >> 8) / 8388608.0 - 1.0);
    }
  }
  return statics;
}

std::vector<double> output(const Program& program, const Statics& statics, std::string_view name) {
  const ReferenceValues values = evaluate_reference(program, statics);
  return values[static_cast<size_t>(program.find(name).index)];
}

// Appends gradients of "loss" by every value of a role, as outputs "grad.<name>".
void append_gradients(Program& program, Role role) {
  std::vector<ValueId> wrt;
  for (size_t i = 0; i < program.values.size(); ++i) {
    const Value& value = program.values[i];
    if (value.role == role && !value.producer.valid()) wrt.push_back({static_cast<int32_t>(i)});
  }
  Builder b(program);
  b.set_role(Role::gradient);
  const ValueId loss = program.find("loss");
  const ValueId seed = b.add_static(Role::input, "seed", b.type(loss));
  const std::vector<ValueId> gradients = differentiate(program, loss, seed, wrt);
  Builder names(program);
  for (size_t i = 0; i < wrt.size(); ++i) {
    ASSERT_TRUE(gradients[i].valid()) << program.value(wrt[i]).name;
    names.mark_output(gradients[i], "grad." + program.value(wrt[i]).name);
  }
  ASSERT_TRUE(verify(program).ok()) << verify(program).error().text();
}

void expect_finite_differences(const Program& program, Statics statics) {
  statics["seed"] = {1.0};
  constexpr double kStep = 1e-5;
  for (const Value& value : program.values) {
    if (value.role != Role::output || !value.name.starts_with("grad.")) continue;
    const std::string name = value.name.substr(5);
    const std::vector<double> gradient = output(program, statics, value.name);
    for (size_t i = 0; i < gradient.size(); ++i) {
      Statics moved = statics;
      moved[name][i] += kStep;
      const double above = output(program, moved, "loss")[0];
      moved[name][i] -= 2 * kStep;
      const double below = output(program, moved, "loss")[0];
      EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-6 * (1 + std::abs(gradient[i])))
          << name << " " << i;
    }
  }
}

void expect_same_outputs(const Program& a, const Program& b, const Statics& statics) {
  for (const Value& value : a.values) {
    if (value.role != Role::output) continue;
    ASSERT_TRUE(b.find(value.name).valid()) << value.name;
    EXPECT_EQ(output(a, statics, value.name), output(b, statics, value.name)) << value.name;
  }
}

AdapterOptions rank_two() {
  AdapterOptions options;
  options.rank = 2;
  options.alpha = 3;
  options.targets = {"all-linear"};
  return options;
}

TEST(Differentiate, WeightsMatchFiniteDifferences) {
  Program program = network();
  append_gradients(program, Role::weight);
  expect_finite_differences(program, random_statics(program, 1));
}

TEST(Differentiate, BuildsOnlyWhatIsAskedFor) {
  Program program = network();
  Builder b(program);
  const ValueId loss = program.find("loss");
  const ValueId seed = b.add_static(Role::input, "seed", b.type(loss));
  const ValueId last = program.find("layers.1.down.weight");
  const size_t before = program.ops.size();
  differentiate(program, loss, seed, std::vector<ValueId>{last});
  // The gradient of the last layer's weight needs nothing of the blocks below.
  for (size_t i = before; i < program.ops.size(); ++i)
    EXPECT_NE(program.ops[i].block, 0) << program_text(program);
}

TEST(Adapters, EqualAddedLowRankWeightAndDifferentiate) {
  const Program base = network();
  const auto modules = choose_modules(base, rank_two());
  ASSERT_TRUE(modules.ok());
  EXPECT_EQ(modules->size(), 6u);
  Program adapted = add_adapters(base, *modules);
  ASSERT_TRUE(verify(adapted).ok()) << verify(adapted).error().text();
  const Statics statics = random_statics(adapted, 2);
  Statics merged = statics;
  for (const AdapterModule& module : *modules) {
    std::vector<double>& w = merged[module.module + ".weight"];
    for (int64_t o = 0; o < module.out; ++o) {
      for (int64_t i = 0; i < module.in; ++i) {
        for (int64_t r = 0; r < module.rank; ++r) {
          w[o * module.in + i] += module.scale * statics.at(module.b_name())[o * module.rank + r] *
                                  statics.at(module.a_name())[r * module.in + i];
        }
      }
    }
  }
  EXPECT_NEAR(output(adapted, statics, "loss")[0], output(base, merged, "loss")[0], 1e-9);
  append_gradients(adapted, Role::adapter);
  expect_finite_differences(adapted, random_statics(adapted, 3));
}

TEST(Adapters, ChoosesByNameWithRanks) {
  const Program base = network();
  AdapterOptions options = rank_two();
  options.targets = {"up", "layers.1.down"};
  options.rank_pattern = {{"layers.0.up", 4}};
  options.rslora = true;
  const auto modules = choose_modules(base, options);
  ASSERT_TRUE(modules.ok());
  ASSERT_EQ(modules->size(), 3u);
  EXPECT_EQ((*modules)[0].module, "layers.0.up");
  EXPECT_EQ((*modules)[0].rank, 4);
  EXPECT_DOUBLE_EQ((*modules)[0].scale, 3 / std::sqrt(4.0));
  EXPECT_EQ((*modules)[1].rank, 2);
}

TEST(Adapters, RefusesWhatMatchesNothing) {
  const Program base = network();
  AdapterOptions options = rank_two();
  options.targets = {"p"};  // a part of a name, but not a whole one
  const auto none = choose_modules(base, options);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().text(), testing::HasSubstr("There are: down, gate, up"));
  options = rank_two();
  options.rank = 0;
  EXPECT_FALSE(choose_modules(base, options).ok());
  options = rank_two();
  options.rank_pattern = {{"q_proj", 8}};
  EXPECT_FALSE(choose_modules(base, options).ok());
}

TEST(FuseAddend, RemovesAdditionsAndKeepsValues) {
  Program program = add_adapters(network(), *choose_modules(network(), rank_two()));
  append_gradients(program, Role::adapter);
  const Program fused = fuse_addend(program);
  ASSERT_TRUE(verify(fused).ok()) << verify(fused).error().text();
  const auto additions = [](const Program& p) {
    return std::count_if(p.ops.begin(), p.ops.end(), [](const Op& op) { return op.def == &add_op(); });
  };
  EXPECT_LT(fused.ops.size(), program.ops.size());
  EXPECT_LT(additions(fused), additions(program) / 2);
  Statics statics = random_statics(program, 4);
  for (const Value& value : program.values) {
    if (value.role != Role::output) continue;
    const std::vector<double> a = output(program, statics, value.name),
                              b = output(fused, statics, value.name);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-9 * (1 + std::abs(a[i]))) << value.name;
  }
}

TEST(RecomputeCheap, KeepsEveryBitAndNoGatedActivation) {
  Program program = add_adapters(network(), *choose_modules(network(), rank_two()));
  append_gradients(program, Role::adapter);
  const Program again = recompute_cheap(program);
  ASSERT_TRUE(verify(again).ok()) << verify(again).error().text();
  expect_same_outputs(program, again, random_statics(program, 5));
  // swiglu and norm of both blocks run twice, and no backward op reads what the first run made.
  size_t first_backward = 0;
  while (again.value(again.ops[first_backward].outputs[0]).role != Role::gradient) ++first_backward;
  EXPECT_EQ(again.ops.size(), program.ops.size() + 4) << program_text(again);
  for (size_t i = first_backward; i < again.ops.size(); ++i) {
    for (ValueId id : again.ops[i].inputs) {
      const Value& value = again.value(id);
      if (!value.producer.valid() || static_cast<size_t>(value.producer.index) >= first_backward) continue;
      const std::string_view maker = again.op(value.producer).def->name;
      EXPECT_TRUE(maker != "swiglu" && maker != "rms_norm") << program_text(again);
    }
  }
}

TEST(Recompute, KeepsEveryBitAndFewerValues) {
  Program program = add_adapters(network(), *choose_modules(network(), rank_two()));
  append_gradients(program, Role::adapter);
  const Statics statics = random_statics(program, 5);
  EXPECT_EQ(block_count(program), 2);
  for (int32_t blocks : {1, 2}) {
    const Program again = recompute_blocks(program, blocks);
    ASSERT_TRUE(verify(again).ok()) << verify(again).error().text();
    EXPECT_GT(again.ops.size(), program.ops.size());
    expect_same_outputs(program, again, statics);
    // No backward op of a recomputed block reads what the forward pass of that block made.
    size_t first_backward = 0;
    while (again.value(again.ops[first_backward].outputs[0]).role != Role::gradient) ++first_backward;
    for (size_t i = first_backward; i < again.ops.size(); ++i) {
      for (ValueId id : again.ops[i].inputs) {
        const Value& value = again.value(id);
        if (!value.producer.valid() || again.ops[i].block < 0 || again.ops[i].block >= blocks) continue;
        const bool old = static_cast<size_t>(value.producer.index) < first_backward;
        EXPECT_FALSE(old && again.op(value.producer).block == again.ops[i].block) << program_text(again);
      }
    }
  }
}

// What stands for updated memory under another shape is stale as well.
TEST(Verify, RefusesAReadThroughAViewAfterAnUpdateInPlace) {
  for (const bool after : {false, true}) {
    Program program;
    program.name = "stale view";
    Builder b(program);
    const ValueId total = b.add_static(Role::gradient_sum, "total", {DType::f32, Shape{2, 2}});
    const ValueId x = b.add_static(Role::input, "x", {DType::f32, Shape{2, 2}});
    const ValueId flat = reshape(b, total, Shape{4});
    if (!after) b.mark_output(sum(b, mul(b, flat, flat)), "squares");
    accumulate(b, total, x);
    if (after) b.mark_output(sum(b, mul(b, flat, flat)), "squares");
    EXPECT_EQ(verify(program).ok(), !after);
  }
}

// One step of AdamW with clipping and decay by hand: g = 3 scaled by 1 / (3 + 1e-6), m and v from zero.
TEST(OptimiserStep, UpdatesAndClears) {
  AdamWOptions options;
  options.weight_decay = 0.1;
  options.max_norm = 1.0;
  const std::vector<TrainedValue> values = {{"w", Shape{1}}};
  const Program program = build_optimiser_step(values, options);
  ASSERT_TRUE(verify(program).ok()) << verify(program).error().text();
  const auto hyper = optimiser_hyper(0.5, 1, options);
  const Statics statics = {{"w", {2.0}},
                           {"w.gradient_sum", {3.0}},
                           {"w.m", {0.0}},
                           {"w.v", {0.0}},
                           {"hyper", {hyper[0], hyper[1], hyper[2]}}};
  const ReferenceValues all = evaluate_reference(program, statics);
  double w = 0, sum_after = -1;
  for (size_t i = 0; i < program.values.size(); ++i) {
    const Value& value = program.values[i];
    if (value.name == "w" && value.producer.valid()) w = all[i][0];
    if (value.name == "w.gradient_sum" && value.producer.valid()) sum_after = all[i][0];
  }
  EXPECT_NEAR(w, 2.0 * (1 - 0.5 * 0.1) - 0.5 * 1.0,
              1e-5);  // the first step moves by lr, whatever the gradient
  EXPECT_EQ(sum_after, 0.0);
  EXPECT_NEAR(output(program, statics, kGradientNormOutput)[0], 3.0, 1e-12);
}

}  // namespace
}  // namespace tenon
