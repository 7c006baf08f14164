// The ceilings of a device, measured.
#pragma once

#include "base/error.h"
#include "device/device.h"

namespace tenon {

// The device's facts with gflops_f32, gflops_bf16 and gigabytes_per_second as measured now. Errors of the
// device.
Result<DeviceFacts> measured_facts(Device& device);

}  // namespace tenon
