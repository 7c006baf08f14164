// The host processor as a Device: arenas in huge pages where the system gives them, kernels run in order on
// one pool of threads. Buffers are host addresses; kernels read mapped files directly.
#pragma once

#include <memory>

#include "device/device.h"

namespace tenon {

// `threads` >= 1 in all, the caller of run() among them. One caller at a time.
std::unique_ptr<Device> make_cpu_device(int threads);

}  // namespace tenon
