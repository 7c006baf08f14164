#include "plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "ir/verify.h"
#include "ops/adamw.h"
#include "ops/scale.h"
#include "plan/random_program.h"
#include "plan/stub_kernels.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

const std::vector<KernelDef>& kernels() {
  static const std::vector<KernelDef> all = stub_kernels();
  return all;
}

Plan planned(std::vector<Program> programs, const PlanOptions& options = {}) {
  auto plan = make_plan(std::move(programs), stub_facts("stub"), kernels(), options);
  EXPECT_TRUE(plan.ok()) << plan.error().text();
  const Status valid = verify_plan(*plan);
  EXPECT_TRUE(valid.ok()) << valid.error().text();
  return std::move(plan).value();
}

Plan planned(const Program& program, const PlanOptions& options = {}) {
  return planned(std::vector<Program>{program}, options);
}

std::string refusal(std::vector<Program> programs, const PlanOptions& options = {}) {
  const auto plan = make_plan(std::move(programs), stub_facts("stub"), kernels(), options);
  return plan.ok() ? "" : plan.error().text();
}

Program program_of(const std::function<void(Builder&)>& fill, std::string name = "p") {
  Program program;
  program.name = std::move(name);
  Builder builder(program);
  fill(builder);
  const Status valid = verify(program);
  EXPECT_TRUE(valid.ok()) << valid.error().text();
  return program;
}

// f32[4, 16] is 256 bytes, f32[4, 24] 384.
//
//   step                                       needs
//   0  h = matmul(x, w1)   256, scratch 257    256 + 320 (257 rounded up to 64)           = 576
//   1  s = silu(h)         256 in h's place    256 + 320                                  = 576
//   2  r = reshape(s)      view                256
//   3  y = matmul(x, w2)   384, scratch 385    256 (r) + 384 + 448                        = 1088, the peak
//   4  t = reshape(r)      view                256 + 384
//   5  m = mul(t, s)       in t's place; it reads s too, which has the same bytes and may be overwritten as
//   well 6  z = matmul(y, w3)   256, scratch 257    256 (m) + 384 (y) + 256 + 320              = 1216: more
Program example() {
  return program_of([](Builder& b) {
    const ValueId x = b.add_static(Role::input, "x", Type{DType::f32, {4, 8}});
    const auto weight = [&](const char* name, int64_t n, int64_t k) {
      return b.add_static(Role::weight, name, Type{DType::f32, {n, k}});
    };
    const ValueId h = linear(b, x, weight("w1", 16, 8));
    const ValueId s = silu(b, h);
    const ValueId r = reshape(b, s, Shape{64});
    const ValueId y = linear(b, x, weight("w2", 24, 8));
    const ValueId t = reshape(b, r, Shape{4, 16});
    const ValueId m = mul(b, t, s);
    const ValueId z = linear(b, y, weight("w3", 16, 24));
    b.mark_output(m, "m");
    b.mark_output(z, "z");
  });
}

TEST(Plan, ExampleByHand) {
  const Plan plan = planned(example());
  const ProgramPlan& p = plan.programs[0];
  // x 128 + w1 512 + w2 768 + w3 1536
  EXPECT_EQ(plan.static_bytes, 2944);
  EXPECT_EQ(p.lower_bound_bytes, 1216);
  EXPECT_EQ(p.peak_step, 6);
  EXPECT_EQ(p.peak_bytes, 1216);
  EXPECT_EQ(plan.work_bytes, 1216);
  const auto output = [&](int step) { return p.placement(p.program.ops[step].outputs[0]); };
  EXPECT_EQ(output(0).kind, PlacementKind::fresh);
  EXPECT_EQ(output(1).kind, PlacementKind::in_place);
  EXPECT_EQ(output(2).kind, PlacementKind::view);
  EXPECT_EQ(output(5).kind, PlacementKind::in_place);
  for (int step : {1, 2, 4, 5}) EXPECT_EQ(output(step).root, p.program.ops[0].outputs[0]);
  EXPECT_EQ(output(0).last_step, 1);
  EXPECT_EQ(output(1).last_step, 5);
  EXPECT_EQ(output(5).last_step, 7);  // an output outlives the seven steps
  EXPECT_EQ(p.steps[0].workspace_bytes, 257);
  EXPECT_EQ(p.steps[2].kernel, nullptr);
}

TEST(Plan, WithoutInPlaceAndReuse) {
  const Plan plan = planned(example(), {.reuse = false, .in_place = false});
  // h s m z 256 each, y 384, scratches 320 + 320 (silu) + 448 + 320
  EXPECT_EQ(plan.work_bytes, 4 * 256 + 384 + 320 + 320 + 448 + 320);
  for (const Placement& placement : plan.programs[0].placements) {
    EXPECT_NE(placement.kind, PlacementKind::in_place);
    EXPECT_NE(placement.kind, PlacementKind::reuse);
  }
}

PlacementKind kind_of(const Plan& plan, std::string_view output) {
  const ProgramPlan& p = plan.programs[0];
  return p.placement(p.program.find(output)).kind;
}

const Type kType{DType::f32, {4, 8}};

// A value of the work arena that may be taken.
ValueId fresh_value(Builder& b) {
  return scale(b, b.add_static(Role::input, "x", kType), 2.0);
}

TEST(Plan, InPlaceIsRefusedWhereBytesAreStillNeeded) {
  const std::vector<std::pair<const char*, std::function<ValueId(Builder&)>>> cases{
      {"static", [](Builder& b) { return silu(b, b.add_static(Role::input, "x", kType)); }},
      {"view of a static",
       [](Builder& b) { return silu(b, reshape(b, b.add_static(Role::input, "x", kType), Shape{32})); }},
      {"read later",
       [](Builder& b) {
         const ValueId h = fresh_value(b);
         const ValueId y = silu(b, h);
         b.mark_output(add(b, h, h), "z");
         return y;
       }},
      {"view read later",
       [](Builder& b) {
         const ValueId h = fresh_value(b);
         const ValueId view = reshape(b, h, Shape{32});
         const ValueId y = silu(b, h);
         b.mark_output(silu(b, view), "z");
         return y;
       }},
      {"output",
       [](Builder& b) {
         const ValueId h = fresh_value(b);
         b.mark_output(h, "h");
         return silu(b, h);
       }},
      {"view that is an output",
       [](Builder& b) {
         const ValueId h = fresh_value(b);
         b.mark_output(reshape(b, h, Shape{32}), "h");
         return silu(b, h);
       }},
      {"other size", [](Builder& b) { return cast(b, fresh_value(b), DType::bf16); }},
      {"addend that is a factor too",
       [](Builder& b) {
         const ValueId w = b.add_static(Role::weight, "w", Type{DType::f32, {8, 8}});
         const ValueId h = linear(b, w, w);
         return linear(b, h, w, h);
       }},
  };
  for (const auto& [name, make] : cases) {
    const Plan plan = planned(program_of([&](Builder& b) { b.mark_output(make(b), "y"); }));
    EXPECT_NE(kind_of(plan, "y"), PlacementKind::in_place) << name;
  }
}

TEST(Plan, InPlaceIsTakenWhereTheInputDies) {
  const Plan silu_plan = planned(program_of([](Builder& b) { b.mark_output(silu(b, fresh_value(b)), "y"); }));
  EXPECT_EQ(kind_of(silu_plan, "y"), PlacementKind::in_place);
  EXPECT_EQ(silu_plan.work_bytes, 128 + 192);  // the value and silu's scratch of 129 bytes
  const Plan addend = planned(program_of([](Builder& b) {
    const ValueId w = b.add_static(Role::weight, "w", Type{DType::f32, {8, 8}});
    b.mark_output(linear(b, w, w, linear(b, w, w)), "y");
  }));
  EXPECT_EQ(kind_of(addend, "y"), PlacementKind::in_place);
}

TEST(Plan, OnlyOneOutputTakesAPlace) {
  const Plan plan = planned(program_of([](Builder& b) {
    const ValueId h = fresh_value(b);
    const auto [dgate, dup] = swiglu_grad(b, h, h, h);
    b.mark_output(dgate, "dgate");
    b.mark_output(dup, "dup");
  }));
  EXPECT_EQ(kind_of(plan, "dgate"), PlacementKind::in_place);
  EXPECT_EQ(kind_of(plan, "dup"), PlacementKind::fresh);
}

TEST(Plan, AKernelMayForbidInPlace) {
  std::vector<KernelDef> strict = kernels();
  for (KernelDef& kernel : strict) kernel.in_place = false;
  const Program program = program_of([](Builder& b) {
    const ValueId h = fresh_value(b);
    b.mark_output(silu(b, accumulate(b, h, b.add_static(Role::input, "x", kType))), "y");
  });
  const auto plan = make_plan({program}, {}, strict);
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(verify_plan(*plan).ok());
  EXPECT_EQ(kind_of(*plan, "y"), PlacementKind::fresh);
  const ProgramPlan& p = plan->programs[0];
  EXPECT_EQ(p.placement(p.program.ops[1].outputs[0]).kind, PlacementKind::in_place);  // must
}

TEST(Plan, UpdatesOfStaticsLieWhereTheStaticsDo) {
  const auto adam = [](Builder& b) {
    const ValueId w = b.add_static(Role::weight, "w", kType);
    const ValueId g = b.add_static(Role::gradient_sum, "g", kType);
    const AdamWState state{w, b.add_static(Role::optimiser_state, "m", kType),
                           b.add_static(Role::optimiser_state, "v", kType)};
    const ValueId norm = b.add_static(Role::input, "norm", Type{DType::f32, {1}});
    adamw(b, state, g, norm, b.add_static(Role::input, "hyper", Type{DType::f32, {3}}), {});
  };
  const auto sum = [](Builder& b) {
    const ValueId g = b.add_static(Role::gradient_sum, "g", kType);
    accumulate(b, g, silu(b, b.add_static(Role::weight, "w", kType)));
  };
  const Plan plan = planned(std::vector<Program>{program_of(sum, "step"), program_of(adam, "update")});
  EXPECT_EQ(plan.statics.size(), 6u);
  EXPECT_EQ(plan.static_bytes, 4 * 128 + 2 * 64);
  EXPECT_EQ(plan.work_bytes, 128 + 192);  // silu's output and scratch; the update needs none
  const ProgramPlan& update = plan.programs[1];
  EXPECT_EQ(update.peak_bytes, 0);
  const Op& op = update.program.ops[0];
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(update.placement(op.outputs[i]).kind, PlacementKind::in_place);
    EXPECT_FALSE(update.in_work_arena(op.outputs[i]));
  }
  EXPECT_EQ(update.placement(op.outputs[1]).offset, update.placement(update.program.find("m")).offset);
}

TEST(Plan, RefusesReadsOfWhatAnUpdateChanged) {
  Program program;
  program.name = "p";
  Builder b(program);
  const ValueId total = b.add_static(Role::gradient_sum, "total", kType);
  const ValueId view = reshape(b, total, Shape{32});
  accumulate(b, total, b.add_static(Role::input, "x", kType));
  silu(b, view);
  EXPECT_THAT(refusal({program}), HasSubstr("read after this step updates it in place"));
}

TEST(Plan, ExternalWeightsTakeNoBytes) {
  const Program program = example();
  const Plan plan = planned(program, {.external = {"w1", "w2", "no such name"}});
  EXPECT_EQ(plan.static_bytes, 2944 - 512 - 768);
  EXPECT_EQ(plan.external_bytes, 512 + 768);
  const ProgramPlan& p = plan.programs[0];
  EXPECT_EQ(p.placement(p.program.find("w1")).kind, PlacementKind::external);
  EXPECT_THAT(refusal({program}, {.external = {"x"}}), HasSubstr("only a weight can stay in its file"));
  const Program update = program_of([](Builder& b) {
    accumulate(b, b.add_static(Role::weight, "w", kType), b.add_static(Role::input, "x", kType));
  });
  EXPECT_THAT(refusal({update}, {.external = {"w"}}), HasSubstr("updated in place"));
}

TEST(Plan, ProgramsMustAgreeOnStatics) {
  const auto with = [](Type type, Role role) {
    return program_of([&](Builder& b) { b.mark_output(silu(b, b.add_static(role, "s", type)), "y"); },
                      type.text() + std::string(role_name(role)));
  };
  EXPECT_THAT(refusal({with(kType, Role::input), with({DType::f32, {8, 4}}, Role::input)}),
              HasSubstr("s: two programs disagree"));
  EXPECT_THAT(refusal({with(kType, Role::input), with(kType, Role::cache)}), HasSubstr("disagree"));
  const auto constant = [](float value) {
    return program_of(
        [&](Builder& b) { b.mark_output(silu(b, b.add_constant("c", Shape{1}, {value})), "y"); },
        std::to_string(value));
  };
  EXPECT_EQ(refusal({constant(1), constant(1)}), "1.000000: two programs have this name");
  EXPECT_THAT(refusal({constant(1), constant(2)}), HasSubstr("data of a constant"));
}

TEST(Plan, NothingToPlan) {
  EXPECT_EQ(planned(std::vector<Program>{}).arena_bytes(), 0);
  EXPECT_EQ(planned(Program{}).arena_bytes(), 0);
  // A zero-length batch.
  const Plan plan = planned(program_of([](Builder& b) {
    b.mark_output(silu(b, silu(b, b.add_static(Role::input, "x", Type{DType::f32, {0, 8}}))), "y");
  }));
  EXPECT_EQ(plan.static_bytes, 0);
}

TEST(Plan, RandomProgramsKeepTheRules) {
  double worst = 1, sum = 0;
  int count = 0;
  int in_place = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Program program = RandomProgram::make(seed, 5 + static_cast<int>(seed % 90));
    const Status valid = verify(program);
    ASSERT_TRUE(valid.ok()) << valid.error().text();
    for (const bool reuse : {true, false}) {
      for (const bool place : {true, false}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << " reuse " << reuse << " in_place " << place);
        const PlanOptions options{.reuse = reuse, .in_place = place};
        const Plan plan = planned(program, options);
        const ProgramPlan& p = plan.programs[0];
        ASSERT_GE(p.peak_bytes, p.lower_bound_bytes);
        EXPECT_EQ(plan_hash(plan), plan_hash(planned(program, options)));
        if (!reuse || p.lower_bound_bytes == 0) continue;
        const double ratio = static_cast<double>(p.peak_bytes) / static_cast<double>(p.lower_bound_bytes);
        worst = std::max(worst, ratio);
        sum += ratio;
        ++count;
        for (const Placement& placement : p.placements) in_place += placement.kind == PlacementKind::in_place;
      }
    }
  }
  std::printf("peak over lower bound: mean %.5f, worst %.5f over %d plans\n", sum / count, worst, count);
  EXPECT_LT(sum / count, 1.003);
  EXPECT_LT(worst, 1.10);
  EXPECT_GT(in_place, 300);
}

TEST(Plan, HashNamesDecisions) {
  const uint64_t base = plan_hash(planned(example()));
  EXPECT_NE(base, plan_hash(planned(example(), {.reuse = false})));
  EXPECT_NE(base, plan_hash(planned(example(), {.in_place = false})));
  EXPECT_NE(base, plan_hash(planned(example(), {.external = {"w1"}})));
  const auto other = make_plan({example()}, stub_facts("other"), kernels());
  EXPECT_NE(base, plan_hash(*other));
}

// A forward pass whose values a backward pass reads in reverse order.
Program deep_program(int blocks) {
  return program_of([&](Builder& b) {
    const ValueId w = b.add_static(Role::weight, "w", Type{DType::f32, {8, 8}});
    ValueId x = b.add_static(Role::input, "x", kType);
    std::vector<ValueId> kept;
    for (int i = 0; i < blocks; ++i) {
      kept.push_back(x);
      x = add(b, linear(b, silu(b, x), w), x);
    }
    b.set_role(Role::gradient);
    ValueId dx = x;
    for (int i = blocks; i-- > 0;) {
      const ValueId again = mul(b, kept[static_cast<size_t>(i)], dx);
      dx = add(b, linear(b, reshape(b, again, Shape{4, 8}), w), dx);
    }
    b.mark_output(dx, "dx");
  });
}

TEST(Plan, AHundredThousandOps) {
  const Program program = deep_program(14'300);
  ASSERT_GT(program.ops.size(), 100'000u);
  const auto start = std::chrono::steady_clock::now();
  const auto plan = make_plan({program}, {}, kernels());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(plan.ok());
  const Status valid = verify_plan(*plan);
  EXPECT_TRUE(valid.ok()) << valid.error().text();
  const ProgramPlan& p = plan->programs[0];
  std::printf("%zu ops in %.2f s, peak over bound %.5f\n", program.ops.size(), seconds.count(),
              static_cast<double>(p.peak_bytes) / static_cast<double>(p.lower_bound_bytes));
  EXPECT_LT(seconds.count(), 10.0);  // a second on an idle machine; a quadratic planner takes minutes
  EXPECT_LT(static_cast<double>(p.peak_bytes), 1.01 * static_cast<double>(p.lower_bound_bytes));
}

}  // namespace
}  // namespace tenon
