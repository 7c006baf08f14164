// What the CUDA runtime says about a GPU, and errors of the runtime as values.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "base/error.h"
#include "device/device_facts.h"

namespace tenon::cuda {

// A runtime error as one of the device's: "SUBJECT: WHAT: MESSAGE".
Error runtime_error(cudaError_t status, std::string_view what, std::string subject);

// The facts of visible device `index`, which becomes this thread's; memory_bytes is what is free on it now,
// with the process's context in place. Fails where there is none or where this build has no code for its
// architecture.
Result<DeviceFacts> open_and_describe(int index);

// cudaErrorNoKernelImageForDevice where the kernels of this build do not run on the current device.
cudaError_t check_kernel_image();

}  // namespace tenon::cuda
