// The options that every command which runs a model shares: --device, --threads, --compute, --graphs.
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
  std::string graphs = "on";
};

void add_device_options(Command& command, DeviceArguments& arguments);

// --weights: how matrices are kept in memory (run/weight_dtypes.h).
Option weights_option(std::string* target);

// "cpu", or "cuda" and "cuda:N" for the N-th visible GPU. Fails where this build or machine has no such
// device.
Result<std::unique_ptr<Device>> open_device(const DeviceArguments& arguments);

// A device that plans are made for and that runs nothing: the machine that a file of facts describes.
Result<std::unique_ptr<Device>> described_device(const std::string& facts_file);

// bf16 where the device computes it natively, else f32; or what was asked for.
DType compute_dtype(const DeviceArguments& arguments, const DeviceFacts& facts);

}  // namespace tenon
