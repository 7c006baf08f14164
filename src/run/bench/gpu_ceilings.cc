#include "run/bench/gpu_ceilings.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "base/half.h"
#include "ir/builder.h"
#include "ops/matmul.h"
#include "ops/scale.h"
#include "run/bench/kernel_times.h"

namespace tenon {
namespace {

constexpr const char* kProgram = "ceiling";
constexpr double kProductSeconds = 4e-3;  // long beside a launch, short beside a run
constexpr double kCopySeconds = 1e-3;     // likewise, of what must first come from the host
constexpr double kBf16Over32 = 8;  // where the facts do not say: what tensor cores are faster, at least
constexpr int64_t kSmallest = 64, kLargest = 8192, kStep = 256;
constexpr int64_t kPool = 1 << 20;
constexpr int kRuns = 5;

// Random bits that repeat after kPool values, made at the speed of copying.
std::vector<std::byte> random_values(const Type& type) {
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> wide(static_cast<size_t>(std::min(type.elements(), kPool)));
  for (float& value : wide) value = uniform(generator);
  std::vector<uint16_t> narrow;
  for (float value : wide) narrow.push_back(f32_to_bf16(value));
  const std::span<const std::byte> pool =
      type.dtype == DType::f32 ? std::as_bytes(std::span(wide)) : std::as_bytes(std::span(narrow));
  std::vector<std::byte> out(static_cast<size_t>(type.bytes()));
  for (size_t at = 0; at < out.size(); at += pool.size()) {
    std::memcpy(out.data() + at, pool.data(), std::min(pool.size(), out.size() - at));
  }
  return out;
}

// Of one op over inputs `a` and, where given, `b`.
Result<KernelTime> time_op(Device& device, const std::vector<Type>& inputs,
                           const std::function<ValueId(Builder&, const std::vector<ValueId>&)>& emit) {
  Program program;
  program.name = kProgram;
  Builder builder(program);
  std::vector<ValueId> ids;
  for (const Type& type : inputs) {
    ids.push_back(builder.add_static(Role::input, "input" + std::to_string(ids.size()), type));
  }
  builder.mark_output(emit(builder, ids), "out");
  std::vector<Program> programs;
  programs.push_back(std::move(program));
  ASSIGN_OR_RETURN(const Plan plan, make_plan(std::move(programs), device.facts(), device.kernels()));
  ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor, Executor::prepare(plan, device, {}));
  for (size_t i = 0; i < inputs.size(); ++i) {
    RETURN_IF_ERROR(executor->write("input" + std::to_string(i), random_values(inputs[i])));
  }
  ASSIGN_OR_RETURN(const std::vector<KernelTime> times, time_kernels(*executor, plan.programs[0], kRuns));
  return times[0];
}

int64_t product_size(double gflops) {
  const double side = std::cbrt(gflops * 1e9 * kProductSeconds / 2);
  const int64_t rounded = static_cast<int64_t>(side) / kStep * kStep;
  return rounded > 0 ? std::min(rounded, kLargest) : kSmallest;
}

Result<double> product_gflops(Device& device, DType dtype, double expected_gflops) {
  const int64_t n = product_size(expected_gflops);
  const Type matrix{dtype, Shape{n, n}};
  ASSIGN_OR_RETURN(
      const KernelTime time,
      time_op(device, {matrix, matrix}, [dtype](Builder& builder, const std::vector<ValueId>& in) {
        return matmul(builder, in[0], in[1], {.trans_b = true, .out_dtype = dtype});
      }));
  return static_cast<double>(time.flops) / time.seconds * 1e-9;
}

Result<double> memory_rate(Device& device, double expected_rate) {
  const double bytes = expected_rate * 1e9 * kCopySeconds / 2;
  const Type type{DType::f32, Shape{std::max<int64_t>(1 << 16, static_cast<int64_t>(bytes) / 4)}};
  ASSIGN_OR_RETURN(const KernelTime time,
                   time_op(device, {type}, [](Builder& builder, const std::vector<ValueId>& in) {
                     return scale(builder, in[0], 2.0);
                   }));
  return static_cast<double>(time.bytes) / time.seconds * 1e-9;
}

}  // namespace

Result<DeviceFacts> measure_gpu_ceilings(Device& device) {
  DeviceFacts facts = device.facts();
  const double bf16 = facts.gflops_bf16 > 0 ? facts.gflops_bf16 : kBf16Over32 * facts.gflops_f32;
  ASSIGN_OR_RETURN(facts.gflops_f32, product_gflops(device, DType::f32, device.facts().gflops_f32));
  ASSIGN_OR_RETURN(facts.gflops_bf16, product_gflops(device, DType::bf16, bf16));
  ASSIGN_OR_RETURN(facts.gigabytes_per_second, memory_rate(device, device.facts().gigabytes_per_second));
  return facts;
}

}  // namespace tenon
