// The device that the tests of the whole run on: the CPU, or what TENON_TEST_DEVICE names ("cuda"), so that
// one set of tests holds for all.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include "cli/device_option.h"

namespace tenon {

inline std::unique_ptr<Device> test_device(int threads) {
  DeviceArguments arguments;
  if (const char* name = std::getenv("TENON_TEST_DEVICE")) arguments.device = name;
  arguments.threads = threads;
  auto device = open_device(arguments);
  CHECK(device.ok(), device.error().text());
  return std::move(device).value();
}

}  // namespace tenon
