// Memory of this process as the kernel counts it (proc(5), /proc/self/status). For run records: the observed
// peak stands beside the planned one.
#pragma once

#include <cstdint>

namespace tenon {

// Bytes of resident memory, mapped files included; 0 where the system does not say.
struct ProcessMemory {
  int64_t resident_bytes = 0;       // now (VmRSS)
  int64_t peak_resident_bytes = 0;  // so far (VmHWM)
};

ProcessMemory process_memory();

}  // namespace tenon
