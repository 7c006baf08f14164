// The ceilings of a device, measured.
#pragma once

#include "device/device_facts.h"

namespace tenon {

// The facts with gflops_f32, gflops_bf16 and gigabytes_per_second as measured now; as they are for a device
// that measures nothing.
DeviceFacts measured_facts(DeviceFacts facts);

}  // namespace tenon
