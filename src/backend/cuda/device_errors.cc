#include "backend/cuda/device_errors.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::cuda {
namespace {

constexpr const char* kDeviceOption = "--device cuda";

}  // namespace

Error no_device_error(int driver, int runtime, std::string_view message) {
  if (driver == 0) {
    return bad_argument("no CUDA driver is loaded here", kDeviceOption,
                        "Run on a machine with an NVIDIA GPU.");
  }
  if (driver < runtime / 1000 * 1000) {
    return bad_argument(fmt::format("the driver serves CUDA up to {}.{}, this program needs {}.0",
                                    driver / 1000, driver % 1000 / 10, runtime / 1000),
                        kDeviceOption, "Update the NVIDIA driver.");
  }
  return bad_argument(std::string(message), kDeviceOption, "Is a GPU visible (nvidia-smi)?");
}

Error no_such_device_error(int index, int count) {
  return bad_argument(fmt::format("there is no device {}: {} visible", index, count), "--device");
}

Error no_code_error(std::string_view architecture, std::string device) {
  return bad_argument(fmt::format("this build has no code for {}", architecture), std::move(device),
                      "Build with its architecture in CMAKE_CUDA_ARCHITECTURES.");
}

std::string call_text(const KernelDef& kernel, const KernelCall& call) {
  std::string types;
  for (const TensorView& view : call.inputs) types += (types.empty() ? "" : ", ") + view.type.text();
  return fmt::format("{}: kernel {}({})", call.step.empty() ? kernel.op : call.step, kernel.name, types);
}

Error failed_launch_error(std::string_view message, const KernelDef& kernel, const KernelCall& call) {
  return device_error(fmt::format("it failed: {}", message), call_text(kernel, call),
                      "What was saved before it is whole; the process must end to use the device again.");
}

Error failed_graph_error(std::string_view message, std::span<const KernelDef* const> kernels,
                         std::span<const KernelCall> calls, size_t reached) {
  const size_t first = std::min(reached, calls.size() - 1) / kLaunchesPerMark * kLaunchesPerMark;
  const size_t end = std::min(first + kLaunchesPerMark, calls.size());
  return device_error(fmt::format("one of {} kernels failed, from {} to {}: {}", end - first,
                                  call_text(*kernels[first], calls[first]),
                                  call_text(*kernels[end - 1], calls[end - 1]), message),
                      "graph",
                      "What was saved before it is whole. The same run with --graphs off names the kernel.");
}

}  // namespace tenon::cuda
