#include "exec/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "exec/fake_device.h"

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Plan planned(std::vector<Program> programs, FakeDevice& device, const PlanOptions& options = {}) {
  auto plan = make_plan(std::move(programs), device.facts(), device.kernels(), options);
  EXPECT_TRUE(plan.ok()) << plan.error().text();
  EXPECT_TRUE(verify_plan(*plan).ok());
  return std::move(plan).value();
}

// Weights whose element i is start + i.
StaticSource counting_source(float start) {
  StaticSource source;
  source.load = [start](const StaticValue&, std::span<std::byte> destination) -> Status {
    for (size_t i = 0; i < destination.size() / 4; ++i) {
      const float value = start + static_cast<float>(i);
      std::memcpy(destination.data() + 4 * i, &value, 4);
    }
    return {};
  };
  return source;
}

std::unique_ptr<Executor> prepared(const Plan& plan, FakeDevice& device, const StaticSource& source,
                                   const ExecutorOptions& options = {}) {
  auto executor = Executor::prepare(plan, device, source, options);
  EXPECT_TRUE(executor.ok()) << executor.error().text();
  return std::move(executor).value();
}

void write(Executor& executor, std::string_view name, std::vector<float> values) {
  const Status status = executor.write(name, std::as_bytes(std::span(values)));
  EXPECT_TRUE(status.ok()) << status.error().text();
}

std::vector<float> read(const Executor& executor, std::string_view name, size_t count) {
  std::vector<float> values(count);
  const Status status = executor.read(name, std::as_writable_bytes(std::span(values)));
  EXPECT_TRUE(status.ok()) << status.error().text();
  return values;
}

std::vector<float> output(const Executor& executor, std::string_view program, std::string_view name,
                          size_t count) {
  std::vector<float> values(count);
  const Status status = executor.read_output(program, name, std::as_writable_bytes(std::span(values)));
  EXPECT_TRUE(status.ok()) << status.error().text();
  return values;
}

void run(Executor& executor, std::string_view program) {
  const Status status = executor.run(program);
  EXPECT_TRUE(status.ok()) << status.error().text();
}

// total += w * x + c, twice the sum is the output; a second program doubles w in place and shows it.
std::vector<Program> two_programs() {
  const Type type{DType::f32, {2}};
  Program step;
  step.name = "step";
  {
    Builder b(step);
    const ValueId w = b.add_static(Role::weight, "w", type);
    const ValueId x = b.add_static(Role::input, "x", type);
    const ValueId c = b.add_constant("c", Shape{2}, {0.5f, 0.25f});
    const ValueId total = b.add_static(Role::gradient_sum, "total", type);
    const ValueId sum = accumulate(b, total, add(b, mul(b, w, x), c));
    b.mark_output(add(b, sum, sum), "twice");
  }
  Program update;
  update.name = "update";
  {
    Builder b(update);
    const ValueId w = b.add_static(Role::weight, "w", type);
    const ValueId doubled = accumulate(b, w, mul(b, w, b.add_static(Role::input, "one", type)));
    b.mark_output(reshape(b, doubled, Shape{1, 2}), "shown");
  }
  return {step, update};
}

TEST(Executor, LoadsRunsAndUpdatesStatics) {
  FakeDevice device;
  const Plan plan = planned(two_programs(), device);
  const auto executor = prepared(plan, device, counting_source(1), {.poison = true});
  EXPECT_EQ(executor->allocated_bytes(), plan.arena_bytes());
  EXPECT_EQ(device.allocated_bytes(), plan.arena_bytes());
  EXPECT_THAT(read(*executor, "w", 2), ElementsAre(1, 2));
  EXPECT_THAT(read(*executor, "total", 2), ElementsAre(0, 0));
  write(*executor, "x", {10, 100});
  write(*executor, "one", {1, 1});
  run(*executor, "step");
  EXPECT_THAT(read(*executor, "total", 2), ElementsAre(10.5, 200.25));
  EXPECT_THAT(output(*executor, "step", "twice", 2), ElementsAre(21, 400.5));
  run(*executor, "update");
  EXPECT_THAT(output(*executor, "update", "shown", 2), ElementsAre(2, 4));
  run(*executor, "step");
  EXPECT_THAT(read(*executor, "total", 2), ElementsAre(31, 600.5));
  EXPECT_THAT(output(*executor, "step", "twice", 2), ElementsAre(62, 1201));
  EXPECT_THAT(output(*executor, "update", "shown", 2), ElementsAre(2, 4));  // static bytes, still there
  EXPECT_EQ(executor->allocations_in_runs(), 0);
}

TEST(Executor, ReadsExternalWeightsWhereTheyLie) {
  FakeDevice device;
  const Plan plan = planned(two_programs(), device);
  const std::vector<float> file{3, 4};
  StaticSource source;
  source.external = [&](const StaticValue& value) -> Result<std::span<const std::byte>> {
    EXPECT_EQ(value.name, "w");
    return std::as_bytes(std::span(file));
  };
  const Plan external = planned({two_programs()[0]}, device, {.external = {"w"}});
  const auto executor = prepared(external, device, source);
  write(*executor, "x", {1, 1});
  run(*executor, "step");
  EXPECT_THAT(output(*executor, "step", "twice", 2), ElementsAre(7, 8.5));
  EXPECT_THAT(read(*executor, "w", 2), ElementsAre(3, 4));
  EXPECT_THAT(executor->write("w", std::as_bytes(std::span(file))).error().text(),
              HasSubstr("stays in its file"));

  source.external = [&](const StaticValue&) -> Result<std::span<const std::byte>> {
    return std::as_bytes(std::span(file)).first(4);
  };
  EXPECT_THAT(Executor::prepare(external, device, source).error().text(), HasSubstr("4 bytes given"));
  alignas(8) std::byte odd[16];
  source.external = [&](const StaticValue&) -> Result<std::span<const std::byte>> {
    return std::span<const std::byte>(odd + 1, 8);
  };
  EXPECT_THAT(Executor::prepare(external, device, source).error().text(), HasSubstr("not aligned"));
  device.set_reads_host_memory(false);
  EXPECT_THAT(Executor::prepare(external, device, source).error().text(), HasSubstr("mapped files"));
}

TEST(Executor, StagesLoadsForADeviceWithMemoryOfItsOwn) {
  FakeDevice device(DeviceKind::cuda);
  const Plan plan = planned(two_programs(), device);
  const auto executor = prepared(plan, device, counting_source(1), {.poison = true});
  write(*executor, "x", {10, 100});
  run(*executor, "step");
  EXPECT_THAT(output(*executor, "step", "twice", 2), ElementsAre(21, 400.5));
}

TEST(Executor, RefusesWrongNamesSizesAndOrder) {
  FakeDevice device;
  const Plan plan = planned(two_programs(), device);
  const auto executor = prepared(plan, device, counting_source(1));
  std::vector<float> two(2), three(3);
  const auto bytes = [](std::vector<float>& v) { return std::as_writable_bytes(std::span(v)); };
  EXPECT_EQ(executor->write("nothing", bytes(two)).error().code, ErrorCode::not_found);
  EXPECT_EQ(executor->write("x", bytes(three)).error().code, ErrorCode::bad_argument);
  EXPECT_EQ(executor->read("x", bytes(three)).error().code, ErrorCode::bad_argument);
  EXPECT_EQ(executor->run("nothing").error().code, ErrorCode::not_found);
  EXPECT_EQ(executor->read_output("step", "x", bytes(two)).error().code, ErrorCode::not_found);
  EXPECT_EQ(executor->read_output("step", "twice", bytes(three)).error().code, ErrorCode::bad_argument);
  EXPECT_THAT(executor->read_output("step", "twice", bytes(two)).error().text(),
              HasSubstr("not the last that ran"));
  run(*executor, "step");
  EXPECT_TRUE(executor->read_output("step", "twice", bytes(two)).ok());
  run(*executor, "update");
  EXPECT_FALSE(executor->read_output("step", "twice", bytes(two)).ok());
}

TEST(Executor, RefusesAPlanForAnotherDevice) {
  FakeDevice device, other;
  const Plan plan = planned(two_programs(), other);
  EXPECT_THAT(Executor::prepare(plan, device, counting_source(1)).error().text(),
              HasSubstr("not of this device"));
}

TEST(Executor, PassesOnErrorsOfLoadingAndAllocating) {
  FakeDevice device;
  const Plan plan = planned(two_programs(), device);
  StaticSource source;
  source.load = [](const StaticValue& value, std::span<std::byte>) -> Status {
    return bad_file("cut short", value.name);
  };
  EXPECT_EQ(Executor::prepare(plan, device, source).error().text(), "w: cut short");
  device.set_memory_bytes(plan.arena_bytes() - 1);
  EXPECT_EQ(Executor::prepare(plan, device, counting_source(1)).error().code, ErrorCode::device);
}

TEST(Executor, IsBrokenAfterAFailureOfTheDevice) {
  FakeDevice device;
  const Plan plan = planned(two_programs(), device);
  const auto executor = prepared(plan, device, counting_source(1));
  device.fail_runs();
  EXPECT_EQ(executor->run("step").error().text(), "fake: lost");
  EXPECT_THAT(executor->run("step").error().text(), HasSubstr("runs nothing more"));
}

TEST(Executor, TimesEachStepAndViewsTakeNone) {
  FakeDevice device;
  const Plan plan = planned(two_programs(), device);
  const auto executor = prepared(plan, device, counting_source(1));
  std::vector<double> seconds(plan.programs[1].steps.size(), -1);
  ASSERT_TRUE(executor->run("update", seconds).ok());
  EXPECT_GT(seconds[0], 0);
  EXPECT_GT(seconds[1], 0);
  EXPECT_EQ(seconds[2], 0);  // the reshape
  EXPECT_EQ(executor->allocations_in_runs(), 0);
}

TEST(Executor, CountsAllocationsOfAKernel) {
  FakeDevice device;
  const Plan plan = planned(two_programs(), device);
  const auto executor = prepared(plan, device, counting_source(1));
  device.allocate_in_next_run();
  run(*executor, "step");
  EXPECT_EQ(executor->allocations_in_runs(), 1);
}

// Outputs and sums of a random program, as bytes.
std::map<std::string, std::vector<std::byte>> results(const Program& program, const PlanOptions& options,
                                                      bool poison) {
  FakeDevice device;
  const Plan plan = planned({program}, device, options);
  const auto executor = prepared(plan, device, counting_source(-0.5f), {.poison = poison});
  std::map<std::string, std::vector<std::byte>> out;
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (const StaticValue& value : plan.statics) {
      if (value.role != Role::input) continue;
      std::vector<float> data(static_cast<size_t>(value.type.elements()));
      for (size_t i = 0; i < data.size(); ++i) data[i] = std::sin(static_cast<float>(i + 1)) / 4;
      write(*executor, value.name, data);
    }
    run(*executor, program.name);
  }
  for (const Value& value : program.values) {
    if (value.role != Role::output) continue;
    auto& bytes = out[value.name];
    bytes.resize(static_cast<size_t>(value.type.bytes()));
    EXPECT_TRUE(executor->read_output(program.name, value.name, bytes).ok());
  }
  for (const StaticValue& value : plan.statics) {
    auto& bytes = out[value.name];
    bytes.resize(static_cast<size_t>(value.type.bytes()));
    EXPECT_TRUE(executor->read(value.name, bytes).ok());
  }
  EXPECT_EQ(executor->allocations_in_runs(), 0);
  return out;
}

// The plan without reuse and in-place choices is the oracle of the one with both. Kernels fill their scratch
// with junk and fresh memory is NaN, so a wrong overlap changes bytes.
TEST(Executor, ReuseAndInPlaceChangeNoBits) {
  int finite = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = RandomProgram::make(seed, 5 + static_cast<int>(seed % 50));
    const auto expected = results(program, {.reuse = false, .in_place = false}, false);
    EXPECT_EQ(results(program, {}, true), expected);
    EXPECT_EQ(results(program, {.in_place = false}, true), expected);
    EXPECT_EQ(results(program, {.reuse = false}, true), expected);
    for (const auto& [name, bytes] : expected) {
      if (!name.starts_with("output") || bytes.size() < 4) continue;
      float first;
      std::memcpy(&first, bytes.data(), 4);
      finite += std::isfinite(first) && first != 0;
    }
  }
  EXPECT_GT(finite, 150);  // equal bytes would say little if they were all zero or NaN
}

TEST(Executor, PoisonShowsAReadOfUnwrittenBytes) {
  FakeDevice device;
  const Plan plan = planned(two_programs(), device);
  device.skip("mul");
  const auto executor = prepared(plan, device, counting_source(1), {.poison = true});
  run(*executor, "step");
  for (float value : output(*executor, "step", "twice", 2)) EXPECT_TRUE(std::isnan(value));
}

TEST(Executor, ZeroLengthValues) {
  Program program;
  program.name = "empty";
  Builder b(program);
  b.mark_output(silu(b, silu(b, b.add_static(Role::input, "x", Type{DType::f32, {0, 8}}))), "y");
  FakeDevice device;
  const Plan plan = planned({program}, device);
  const auto executor = prepared(plan, device, {});
  EXPECT_TRUE(executor->write("x", {}).ok());
  run(*executor, "empty");
  EXPECT_TRUE(executor->read_output("empty", "y", {}).ok());
}

}  // namespace
}  // namespace tenon
