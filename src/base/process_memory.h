// Memory of this process as the kernel counts it (proc(5)), mapped files included. For run records: the
// observed peak stands beside the planned one. Both are 0 where the system does not say.
#pragma once

#include <cstdint>

namespace tenon {

// Now (VmRSS). Microseconds: it is asked for after every step.
int64_t resident_bytes();

// The most so far (VmHWM).
int64_t peak_resident_bytes();

}  // namespace tenon
