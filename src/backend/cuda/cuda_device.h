// A CUDA GPU as a Device: arenas in its memory, a program's calls captured into one graph. In the emulated
// build the "GPU" is the host (backend/cuda/emulator.h).
#pragma once

#include <memory>

#include "base/error.h"
#include "device/device.h"

namespace tenon {

struct CudaOptions {
  int index = 0;  // of the visible devices
  bool graphs =
      true;  // off: calls are launched one by one and each is waited for, so that a failure names its step
};

// Fails, in one message, where there is no driver, device or cuBLASLt, or where the device is of an
// architecture that this build has no code for.
Result<std::unique_ptr<Device>> open_cuda_device(const CudaOptions& options);

}  // namespace tenon
