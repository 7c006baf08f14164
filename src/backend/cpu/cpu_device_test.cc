#include "backend/cpu/cpu_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "backend/cpu/cpu_facts.h"
#include "base/allocation_counter.h"
#include "ops/op_list.h"

namespace tenon {
namespace {

TEST(CpuFacts, DescribeThisMachine) {
  const DeviceFacts facts = cpu_facts(3);
  EXPECT_EQ(facts.kind, DeviceKind::cpu);
  EXPECT_EQ(facts.threads, 3);
  EXPECT_FALSE(facts.name.empty());
  EXPECT_GT(facts.memory_bytes, 64 << 20);
  EXPECT_EQ(facts.has("avx2"), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(facts.has("avx512"), __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"));
}

TEST(CpuDevice, BlocksAreAlignedZeroedAndWritable) {
  const auto device = make_cpu_device(2);
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{4096}, int64_t{(5 << 20) + 3}}) {
    const auto buffer = device->allocate(bytes);
    ASSERT_TRUE(buffer.ok()) << buffer.error().text();
    EXPECT_EQ((*buffer)->bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*buffer)->data()) % kArenaAlignment, 0u);
    std::byte* data = (*buffer)->data();
    EXPECT_TRUE(std::all_of(data, data + bytes, [](std::byte b) { return b == std::byte{0}; }));
    std::fill_n(data, bytes, std::byte{1});
  }
}

TEST(CpuDevice, AnAbsurdSizeIsAnError) {
  const auto buffer = make_cpu_device(1)->allocate(int64_t{1} << 60);
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.error().code, ErrorCode::device);
}

TEST(CpuDevice, RunsCallsInOrderWithoutAllocating) {
  const auto device = make_cpu_device(2);
  const auto kernel = std::find_if(device->kernels().begin(), device->kernels().end(),
                                   [](const KernelDef& k) { return k.name == "add_vector"; });
  ASSERT_NE(kernel, device->kernels().end());
  std::vector<float> a(5000, 1.0f), b(5000, 2.0f), sum(5000), twice(5000);
  const auto view = [](std::vector<float>& v) {
    return TensorView{reinterpret_cast<std::byte*>(v.data()), {DType::f32, Shape{5000}}};
  };
  const Attrs attrs;
  const std::array<TensorView, 2> first_in = {view(a), view(b)}, second_in = {view(sum), view(sum)};
  const std::array<TensorView, 1> first_out = {view(sum)}, second_out = {view(twice)};
  std::array<KernelCall, 2> calls;
  calls[0] = {&attrs, first_in, first_out, {}};
  calls[1] = {&attrs, second_in, second_out, {}};
  const std::array<const KernelDef*, 2> kernels = {&*kernel, &*kernel};
  std::array<double, 2> seconds{-1, -1};
  const auto launches = device->prepare(kernels, calls);
  ASSERT_TRUE(launches.ok());
  const int64_t allocations = heap_allocations();
  ASSERT_TRUE((*launches)->run(seconds).ok());
  ASSERT_TRUE((*launches)->run({}).ok());
  EXPECT_EQ(heap_allocations(), allocations);
  EXPECT_TRUE(std::all_of(twice.begin(), twice.end(), [](float x) { return x == 6.0f; }));
  EXPECT_GE(seconds[0], 0);
  EXPECT_GE(seconds[1], 0);
}

}  // namespace
}  // namespace tenon
