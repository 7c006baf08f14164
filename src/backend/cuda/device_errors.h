// What is said when a GPU cannot be used or fails: pure functions of what the driver reports, so that the
// emulated device says the same.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "device/kernel.h"

namespace tenon::cuda {

// Why no device can be opened: `driver` and `runtime` are CUDA versions as the runtime writes them (13000 is
// 13.0), a driver of 0 is none; `message` is the runtime's own.
Error no_device_error(int driver, int runtime, std::string_view message);
Error no_such_device_error(int index, int count);
Error no_code_error(std::string_view architecture, std::string device);

// A launch as errors name it: "STEP: kernel NAME(TYPES)".
std::string call_text(const KernelDef& kernel, const KernelCall& call);

// A launch failed on the device; what had been started before it is known only to have begun.
Error failed_launch_error(std::string_view message, const KernelDef& kernel, const KernelCall& call);
// A graph notes how far it has come, once every so many launches, where a dead device cannot take it away.
inline constexpr size_t kLaunchesPerMark = 32;

// A launch of a graph failed, of those that follow the last mark before `reached`.
Error failed_graph_error(std::string_view message, std::span<const KernelDef* const> kernels,
                         std::span<const KernelCall> calls, size_t reached);

}  // namespace tenon::cuda
