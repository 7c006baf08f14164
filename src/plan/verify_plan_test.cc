// Plans that are right until one thing in them is changed: each change must be noticed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "ops/scale.h"
#include "plan/plan.h"
#include "plan/random_program.h"
#include "plan/stub_kernels.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

// %0 x static, %1 w static, %2 = scale, %3 = silu in place of %2, %4 = matmul, %5 = add of %3 and %4
// (marked).
Plan sound_plan() {
  static const std::vector<KernelDef> kernels = stub_kernels();
  Program program;
  program.name = "p";
  Builder b(program);
  const ValueId x = b.add_static(Role::input, "x", Type{DType::f32, {8, 8}});
  const ValueId w = b.add_static(Role::weight, "w", Type{DType::f32, {8, 8}});
  const ValueId h = silu(b, scale(b, x, 2.0));
  b.mark_output(add(b, h, linear(b, h, w)), "y");
  auto plan = make_plan({program}, {}, kernels);
  EXPECT_TRUE(plan.ok());
  EXPECT_TRUE(verify_plan(*plan).ok());
  return std::move(plan).value();
}

void expect_noticed(const std::function<void(Plan&, ProgramPlan&)>& change, const char* message) {
  Plan plan = sound_plan();
  change(plan, plan.programs[0]);
  const Status status = verify_plan(plan);
  ASSERT_FALSE(status.ok()) << message;
  EXPECT_THAT(status.error().text(), HasSubstr(message));
}

TEST(VerifyPlan, NoticesWrongPlaces) {
  expect_noticed([](Plan&, ProgramPlan& p) { p.placements[4].offset = p.placements[2].offset; }, "overlaps");
  expect_noticed([](Plan&, ProgramPlan& p) { p.steps[2].workspace_offset = 0; }, "overlaps");
  expect_noticed(
      [](Plan&, ProgramPlan& p) {
        for (int i : {2, 3, 5}) p.placements[i].offset += 4;
      },
      "not aligned");
  expect_noticed([](Plan& plan, ProgramPlan&) { plan.work_bytes -= 64; }, "outside its arena");
  expect_noticed([](Plan&, ProgramPlan& p) { p.peak_bytes += 64; }, "the peak is not where");
  expect_noticed([](Plan&, ProgramPlan& p) { p.lower_bound_bytes = p.peak_bytes + 1; },
                 "below the lower bound");
  expect_noticed([](Plan&, ProgramPlan& p) { p.placements[3].offset += 64; }, "not where its root is");
  expect_noticed([](Plan&, ProgramPlan& p) { p.placements[4].bytes -= 4; }, "another size");
}

TEST(VerifyPlan, NoticesWrongSharing) {
  // The matmul's output in its input's place, which no alias allows.
  expect_noticed(
      [](Plan&, ProgramPlan& p) {
        p.placements[4] = p.placements[3];
        p.placements[4].first_step = 2;
      },
      "no alias allows");
  // The sum in the place of %4 as well as of %2 is fine for one of them alone; in the static's it is not.
  expect_noticed(
      [](Plan&, ProgramPlan& p) {
        p.placements[2].kind = PlacementKind::in_place;
        p.placements[2].root = ValueId{0};
        p.placements[2].offset = p.placements[0].offset;
        p.placements[3].root = ValueId{0};
        p.placements[3].offset = p.placements[0].offset;
        p.placements[5].root = ValueId{0};
        p.placements[5].offset = p.placements[0].offset;
      },
      "overwrites a static value");
  expect_noticed([](Plan&, ProgramPlan& p) { p.placements[3].kind = PlacementKind::view; }, "wrong kind");
  expect_noticed([](Plan&, ProgramPlan& p) { p.placements[3].kind = PlacementKind::fresh; }, "wrong root");
}

TEST(VerifyPlan, NoticesReadsOfTakenBytes) {
  // silu's output is read twice more; its input as well, once the program is changed under the plan.
  expect_noticed([](Plan&, ProgramPlan& p) { p.program.ops[3].inputs[0] = ValueId{2}; },
                 "after its bytes were taken");
}

TEST(VerifyPlan, NoticesWrongStepsAndStatics) {
  expect_noticed([](Plan&, ProgramPlan& p) { p.steps[1].kernel = nullptr; }, "wrong kernel");
  expect_noticed([](Plan&, ProgramPlan& p) { p.steps[1].kernel = p.steps[0].kernel; }, "wrong kernel");
  expect_noticed([](Plan&, ProgramPlan& p) { p.steps.pop_back(); }, "missing");
  expect_noticed([](Plan& plan, ProgramPlan&) { plan.statics[1].offset = 0; }, "overlaps");
  expect_noticed([](Plan& plan, ProgramPlan&) { plan.static_bytes -= 64; }, "outside its arena");
  expect_noticed([](Plan& plan, ProgramPlan&) { plan.statics[1].name = "other"; }, "not among the statics");
}

}  // namespace
}  // namespace tenon
