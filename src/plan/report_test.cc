#include "plan/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/json.h"
#include "ops/scale.h"
#include "plan/random_program.h"
#include "plan/stub_kernels.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

int64_t sum(const BytesByUse& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

int64_t of(const BytesByUse& bytes, MemoryUse use) {
  return bytes[static_cast<size_t>(use)];
}

const std::vector<KernelDef>& kernels() {
  static const std::vector<KernelDef> all = stub_kernels();
  return all;
}

// Values are f32[4, 8], 128 bytes.
//   0 h = scale(x)       kept: the backward part reads it
//   1 s = matmul(h, w)   dies at step 2; scratch 129 -> 192
//   2 y = matmul(s, w)   kept; scratch 192
//   3 g = mul(h, y)      gradient; the first, so that the backward part begins here; takes no place: y and h
//                        are read below
//   4 d = matmul(g, w)   gradient; scratch 192
//   5 e = mul(h, d)      gradient, in h's place
//   6 f = mul(e, y)      output, in e's place
Plan training_plan() {
  Program program;
  program.name = "train";
  Builder b(program);
  const ValueId x = b.add_static(Role::input, "x", Type{DType::f32, {4, 8}});
  const ValueId w = b.add_static(Role::weight, "w", Type{DType::f32, {8, 8}});
  b.set_name("first");
  const ValueId h = scale(b, x, 2.0);
  const ValueId y = linear(b, linear(b, h, w), w);
  b.set_role(Role::gradient);
  b.set_name("back");
  const ValueId d = linear(b, mul(b, h, y), w);
  b.mark_output(mul(b, mul(b, h, d), y), "f");
  auto plan = make_plan({program}, {}, kernels());
  EXPECT_TRUE(plan.ok());
  EXPECT_TRUE(verify_plan(*plan).ok());
  return std::move(plan).value();
}

TEST(Report, TimelineByHand) {
  const Plan plan = training_plan();
  const auto timeline = memory_timeline(plan.programs[0]);
  ASSERT_EQ(timeline.size(), 7u);
  const auto expect = [&](int step, int64_t kept, int64_t passing, int64_t gradients, int64_t scratch,
                          int64_t outputs) {
    SCOPED_TRACE(step);
    EXPECT_EQ(of(timeline[step], MemoryUse::kept_activations), kept);
    EXPECT_EQ(of(timeline[step], MemoryUse::activations), passing);
    EXPECT_EQ(of(timeline[step], MemoryUse::gradients), gradients);
    EXPECT_EQ(of(timeline[step], MemoryUse::scratch), scratch);
    EXPECT_EQ(of(timeline[step], MemoryUse::outputs), outputs);
  };
  expect(0, 128, 0, 0, 0, 0);
  expect(1, 128, 128, 0, 192, 0);
  expect(2, 256, 128, 0, 192, 0);
  expect(3, 256, 0, 128, 0, 0);
  expect(4, 256, 0, 256, 192, 0);
  expect(5, 128, 0, 256, 0, 0);  // e holds h's bytes, d is read
  expect(6, 128, 0, 0, 0, 128);
}

TEST(Report, SumsAgreeWithThePlan) {
  const Plan plan = training_plan();
  const MemoryReport report = memory_report(plan);
  EXPECT_EQ(report.peak_program, "train");
  EXPECT_EQ(report.peak_step, 4);
  EXPECT_EQ(report.peak_op, "matmul back");
  EXPECT_EQ(report.lower_bound_bytes, 256 + 256 + 192);
  EXPECT_EQ(sum(report.peak_bytes), report.lower_bound_bytes);
  EXPECT_EQ(sum(report.static_bytes), plan.static_bytes);
  EXPECT_EQ(of(report.static_bytes, MemoryUse::weights), 256);
  EXPECT_EQ(of(report.static_bytes, MemoryUse::inputs), 128);
  ASSERT_EQ(report.live_at_peak.size(), 5u);
  EXPECT_EQ(report.live_at_peak[0].use, MemoryUse::scratch);
  EXPECT_EQ(report.live_at_peak[0].bytes, 192);
  // Three products of [4, 8] and [8, 8], 2 * 256 each; scale and three mul of 32.
  ASSERT_EQ(report.work.size(), plan.programs.size());
  EXPECT_EQ(report.work[0].program, "train");
  EXPECT_EQ(report.work[0].flops, 3 * 512 + 4 * 32);
}

TEST(Report, RandomTimelinesReachTheBound) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const auto plan = make_plan({RandomProgram::make(seed, 40)}, {}, kernels());
    ASSERT_TRUE(plan.ok());
    int64_t most = 0;
    for (const BytesByUse& bytes : memory_timeline(plan->programs[0])) most = std::max(most, sum(bytes));
    EXPECT_EQ(most, plan->programs[0].lower_bound_bytes) << seed;
    EXPECT_EQ(sum(memory_report(*plan).peak_bytes), most) << seed;
  }
}

TEST(Report, TextAndJsonSayTheSame) {
  const MemoryReport report = memory_report(training_plan());
  const std::string text = memory_report_text(report);
  EXPECT_THAT(text, HasSubstr("kept activations"));
  EXPECT_THAT(text, HasSubstr("step 4 of train (matmul back)"));
  const auto json = Json::parse(memory_report_json(report));
  EXPECT_EQ(json["arena_bytes"], report.arena_bytes);
  EXPECT_EQ(json["peak_by_use"]["kept activations"], 256);
  EXPECT_EQ(json["live_at_peak"].size(), 5u);
}

TEST(Report, StepsHaveOneLineEach) {
  const Plan plan = training_plan();
  const std::string text = steps_text(plan.programs[0]);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7);
  EXPECT_THAT(text, HasSubstr("(f32[4, 8], f32[8, 8]) -> (f32[4, 8])"));
  EXPECT_THAT(text, HasSubstr("in_place"));
}

TEST(Report, AnEmptyPlan) {
  const auto plan = make_plan({}, {}, kernels());
  EXPECT_EQ(memory_report(*plan).arena_bytes, 0);
  EXPECT_FALSE(memory_report_text(memory_report(*plan)).empty());
}

}  // namespace
}  // namespace tenon
