// The options that every command which runs a model shares: --device, --threads, --compute.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/dtype.h"
#include "base/error.h"
#include "cli/command.h"
#include "device/device.h"

namespace tenon {

struct DeviceArguments {
  std::string device = "cpu";
  std::string compute = "auto";
  int64_t threads = 0;  // 0: every core
};

void add_device_options(Command& command, DeviceArguments& arguments);

// --weights: how matrices are kept in memory (run/weight_dtypes.h), "as-stored" at first.
Option weights_option(std::string* target);

Result<std::unique_ptr<Device>> open_device(const DeviceArguments& arguments);

// bf16 where the device computes it natively, else f32; or what was asked for.
DType compute_dtype(const DeviceArguments& arguments, const DeviceFacts& facts);

}  // namespace tenon
