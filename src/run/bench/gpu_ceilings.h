// The rates that a GPU reaches at best: large matrix products through the kernels of the plan, and moving
// memory.
#pragma once

#include "base/error.h"
#include "device/device.h"

namespace tenon {

// The device's facts with gflops_f32, gflops_bf16 and gigabytes_per_second as measured now. Products are
// sized to take a few milliseconds by what the facts say, small ones where they say nothing; operands are
// random, since zeros run faster. Errors of the device.
Result<DeviceFacts> measure_gpu_ceilings(Device& device);

}  // namespace tenon
