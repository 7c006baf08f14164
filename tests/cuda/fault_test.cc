// A kernel that fails on the GPU is named, with its step and sizes. The device is lost then, so each case
// runs in a process of its own. An emulated GPU aborts instead; tests/scripts/gpu.t has its faults.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "backend/cuda/cuda_device.h"
#include "ir/attrs.h"

namespace tenon {
namespace {

// Takes rows 1 and 99 of a matrix of four, `copies` times after as many that are right, and ends the process
// with what the device says.
[[noreturn]] void take_a_row_that_is_not_there(bool graphs, int copies) {
  auto device = open_cuda_device({.graphs = graphs});
  CHECK(device.ok());
  const KernelDef* kernel = nullptr;
  for (const KernelDef& each : (*device)->kernels()) {
    if (each.name == "gather_rows") kernel = &each;
  }
  const Type x{DType::f32, Shape{4, 8}}, rows{DType::i32, Shape{2}}, out{DType::f32, Shape{2, 8}};
  auto buffer = (*device)->allocate(4096);
  CHECK(kernel != nullptr && buffer.ok());
  std::byte* data = (*buffer)->data();
  const int32_t right[2] = {1, 3}, wrong[2] = {1, 99};
  CHECK((*device)->upload(data + 1024, std::as_bytes(std::span(right))).ok());
  CHECK((*device)->upload(data + 2048, std::as_bytes(std::span(wrong))).ok());
  const TensorView good[] = {{data, x}, {data + 1024, rows}}, bad[] = {{data, x}, {data + 2048, rows}};
  const TensorView result[] = {{data + 3072, out}};
  std::vector<KernelCall> calls(static_cast<size_t>(2 * copies));
  for (size_t i = 0; i < calls.size(); ++i) {
    const bool fails = i >= calls.size() / 2;
    calls[i].inputs = fails ? std::span(bad) : std::span(good);
    calls[i].outputs = result;
    calls[i].step = fails ? "wrong" : "right";
  }
  const std::vector<const KernelDef*> kernels(calls.size(), kernel);
  auto launches = (*device)->prepare(kernels, calls);
  CHECK(launches.ok(), launches.error().text());
  const Status status = (*launches)->run({});
  std::fputs(status.ok() ? "nothing failed" : status.error().text().c_str(), stderr);
  std::exit(status.ok() ? 0 : 1);
}

class Fault : public testing::Test {
 protected:
  void SetUp() override {
#ifdef TENON_CUDA_EMULATED
    GTEST_SKIP() << "an emulated GPU aborts";
#endif
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(Fault, IsOfAStepAKernelAndSizesWithGraphsOff) {
  EXPECT_EXIT(take_a_row_that_is_not_there(false, 1), testing::ExitedWithCode(1),
              "wrong: kernel gather_rows.f32.4, 8., i32.2..: it failed: ");
}

TEST_F(Fault, IsOneOfAFewWithGraphs) {
  EXPECT_EXIT(take_a_row_that_is_not_there(true, 40), testing::ExitedWithCode(1),
              "of 32 kernels failed, from right: kernel gather_rows.*to wrong: kernel gather_rows");
}

}  // namespace
}  // namespace tenon
