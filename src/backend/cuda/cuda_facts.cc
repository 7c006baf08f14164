#ifndef TENON_CUDA_EMULATED

#include "backend/cuda/cuda_facts.h"

#include <fmt/format.h>

#include "backend/cuda/device_errors.h"

namespace tenon::cuda {
namespace {

// f32 operations of one multiprocessor and clock, a multiply-add as two: the CUDA programming guide's table
// of arithmetic throughput, by compute capability.
int f32_per_clock(int major, int minor) {
  if (major == 7 || (major == 8 && minor == 0)) return 2 * 64;
  return 2 * 128;
}

Error no_device(cudaError_t status) {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  return no_device_error(driver, runtime, cudaGetErrorString(status));
}

}  // namespace

Error runtime_error(cudaError_t status, std::string_view what, std::string subject) {
  return device_error(fmt::format("{}: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status)),
                      std::move(subject));
}

Result<DeviceFacts> open_and_describe(int index) {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess) return no_device(counted);
  if (index < 0 || index >= count) return no_such_device_error(index, count);
  cudaDeviceProp properties{};
  cudaError_t status = cudaSetDevice(index);
  if (status == cudaSuccess) status = cudaGetDeviceProperties(&properties, index);
  if (status == cudaSuccess) status = cudaFree(nullptr);  // makes the context, whose memory is then not free
  if (status != cudaSuccess)
    return runtime_error(status, "it does not start", fmt::format("CUDA device {}", index));
  const std::string architecture = fmt::format("sm_{}{}", properties.major, properties.minor);
  if (check_kernel_image() != cudaSuccess) return no_code_error(architecture, properties.name);
  size_t free_bytes = 0, total_bytes = 0;
  int clock_khz = 0, memory_khz = 0, bus_bits = 0;
  cudaMemGetInfo(&free_bytes, &total_bytes);
  cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, index);
  cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, index);
  cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, index);
  DeviceFacts facts;
  facts.kind = DeviceKind::cuda;
  facts.name = properties.name;
  facts.features = {architecture};
  if (properties.major >= 8) facts.features.emplace_back("bf16");
  facts.memory_bytes = static_cast<int64_t>(free_bytes);
  facts.gflops_f32 = properties.multiProcessorCount * f32_per_clock(properties.major, properties.minor) *
                     static_cast<double>(clock_khz) * 1e-6;
  facts.gigabytes_per_second = 2.0 * memory_khz * 1e3 * bus_bits / 8 * 1e-9;  // double data rate
  return facts;
}

}  // namespace tenon::cuda

#endif
