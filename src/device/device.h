// A device that programs run on: its facts, its kernels, its memory. The only class with virtual functions
// that the rooms above backend/ see; everything before exec/ uses facts and kernels only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/stored_part.h"
#include "device/device_facts.h"
#include "device/kernel.h"

namespace tenon {

// A block of device memory, freed with the object. On a CPU data() is a host address.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 protected:
  DeviceBuffer(std::byte* data, int64_t bytes) : data_(data), bytes_(bytes) {}

 private:
  std::byte* data_;
  int64_t bytes_;
};

// The calls of a program on a device, with whatever they need before the first run fixed: a library's
// algorithms, a captured graph. Running them makes no heap allocation.
class Launches {
 public:
  virtual ~Launches() = default;
  // Runs the calls in order and returns when all are done. `timings_seconds`, where not empty, receives one
  // time per call.
  virtual Status run(std::span<double> timings_seconds) = 0;
};

// What this process holds of a device's own memory.
struct DeviceMemoryUse {
  int64_t context_bytes = 0;  // the driver's context and libraries, measured when the device was opened
  int64_t used_bytes = 0;     // all of it, now
  int64_t pinned_bytes = 0;   // of the host's memory, through which everything goes to the device
  int64_t loading_bytes = 0;  // of the device's, taken only while weights are loaded
};

// A value that is not finite: where it is in the `load`-th weight given to Device::load.
struct NotFinite {
  int64_t load = 0, element = 0;
};

struct Loaded {
  int64_t bytes = 0;  // that went to the device
  std::optional<NotFinite> not_finite;
};

// Threads that bring stored bytes to a device: more do not make a page cache faster.
inline constexpr int kMostLoadingThreads = 8;

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceFacts& facts() const = 0;
  virtual std::span<const KernelDef> kernels() const = 0;
  // `bytes` of zeroed memory aligned to kArenaAlignment; the pages are touched, so a later step never faults.
  virtual Result<std::unique_ptr<DeviceBuffer>> allocate(int64_t bytes) = 0;
  // Whether kernels can read host memory directly (a mapped weight file needs no copy).
  virtual bool reads_host_memory() const = 0;
  virtual Status upload(std::byte* to_device, std::span<const std::byte> from_host) = 0;
  // Starts loading a weight of `dtype` at `to` from parts of stored tensors, which the device converts; what
  // no part covers stays as it is. The parts' bytes must stay where they are until finish_loading(), which
  // waits for all that was started since it was last called and gives the first value that is not finite
  // (parts that are unchanged are not looked at). For devices that do not read host memory.
  virtual Status load(std::byte* to, DType dtype, std::span<const StoredPart> parts);
  virtual Result<Loaded> finish_loading();
  virtual Status download(std::span<std::byte> to_host, const std::byte* from_device) = 0;
  // Zeros where the device shares the host's memory.
  virtual DeviceMemoryUse memory_use() const { return {}; }
  // `kernels` and `calls` (one kernel a call) must outlive the result.
  virtual Result<std::unique_ptr<Launches>> prepare(std::span<const KernelDef* const> kernels,
                                                    std::span<KernelCall> calls) = 0;
};

}  // namespace tenon
