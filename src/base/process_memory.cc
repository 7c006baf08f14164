#include "base/process_memory.h"

#include <fstream>
#include <sstream>
#include <string>

namespace tenon {

ProcessMemory process_memory() {
  ProcessMemory memory;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream fields(line);
    std::string key;
    int64_t kibibytes = 0;
    if (!(fields >> key >> kibibytes)) continue;
    if (key == "VmRSS:") memory.resident_bytes = kibibytes * 1024;
    if (key == "VmHWM:") memory.peak_resident_bytes = kibibytes * 1024;
  }
  return memory;
}

}  // namespace tenon
