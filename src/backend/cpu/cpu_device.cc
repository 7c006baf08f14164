#include "backend/cpu/cpu_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "backend/cpu/cpu_facts.h"
#include "backend/cpu/kernel_list.h"
#include "base/check.h"
#include "base/checked_math.h"
#include "base/threads.h"

namespace tenon {
namespace {

constexpr int64_t kHugePage = 2 << 20, kSmallPage = 4096;

class MappedBuffer : public DeviceBuffer {
 public:
  // `mapping` is `mapped_bytes` long; the buffer is its part from `data` on.
  MappedBuffer(void* mapping, int64_t mapped_bytes, std::byte* data, int64_t bytes)
      : DeviceBuffer(data, bytes), mapping_(mapping), mapped_bytes_(mapped_bytes) {}
  ~MappedBuffer() override { munmap(mapping_, static_cast<size_t>(mapped_bytes_)); }
  MappedBuffer(const MappedBuffer&) = delete;
  MappedBuffer& operator=(const MappedBuffer&) = delete;

 private:
  void* mapping_;
  int64_t mapped_bytes_;
};

class CpuLaunches : public Launches {
 public:
  CpuLaunches(std::span<const KernelDef* const> kernels, std::span<const KernelCall> calls)
      : kernels_(kernels), calls_(calls) {}

  Status run(std::span<double> timings_seconds) override {
    using Clock = std::chrono::steady_clock;
    CHECK(timings_seconds.empty() || timings_seconds.size() == calls_.size());
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (timings_seconds.empty()) {
        kernels_[i]->run(calls_[i]);
        continue;
      }
      const Clock::time_point start = Clock::now();
      kernels_[i]->run(calls_[i]);
      timings_seconds[i] = std::chrono::duration<double>(Clock::now() - start).count();
    }
    return {};
  }

 private:
  std::span<const KernelDef* const> kernels_;
  std::span<const KernelCall> calls_;
};

class CpuDevice : public Device {
 public:
  explicit CpuDevice(int threads) : facts_(cpu_facts(threads)), threads_(threads) {}

  const DeviceFacts& facts() const override { return facts_; }
  std::span<const KernelDef> kernels() const override { return cpu_kernels(); }
  bool reads_host_memory() const override { return true; }

  Result<std::unique_ptr<DeviceBuffer>> allocate(int64_t bytes) override {
    CHECK(bytes >= 0);
    const int64_t size = std::max<int64_t>(round_up(bytes, kArenaAlignment), kArenaAlignment);
    // One huge page more than asked lets the block start at a boundary of one.
    const int64_t mapped = size + (size >= kHugePage ? kHugePage : 0);
    void* mapping = mmap(nullptr, static_cast<size_t>(mapped), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) {
      return device_error("the system gives no block of " + std::to_string(bytes) + " bytes", facts_.name,
                          "Close other programs, raise the memory limit, or plan for a smaller budget.");
    }
    std::byte* data = static_cast<std::byte*>(mapping);
    if (size >= kHugePage) {
      const auto address = reinterpret_cast<uintptr_t>(mapping);
      data += round_up(static_cast<int64_t>(address), kHugePage) - static_cast<int64_t>(address);
      madvise(data, static_cast<size_t>(size), MADV_HUGEPAGE);  // advice only: small pages work too
    }
    // Each page, which the system gives zeroed, is first touched by a thread of the pool: that places it in
    // the thread's memory node.
    threads_.parallel_for(size, kHugePage, [&](Range range) {
      for (int64_t at = range.begin; at < range.end; at += kSmallPage) data[at] = std::byte{0};
    });
    return std::unique_ptr<DeviceBuffer>(std::make_unique<MappedBuffer>(mapping, mapped, data, bytes));
  }

  Status upload(std::byte* to_device, std::span<const std::byte> from_host) override {
    if (!from_host.empty()) std::memcpy(to_device, from_host.data(), from_host.size());
    return {};
  }
  Status download(std::span<std::byte> to_host, const std::byte* from_device) override {
    if (!to_host.empty()) std::memcpy(to_host.data(), from_device, to_host.size());
    return {};
  }

  Result<std::unique_ptr<Launches>> prepare(std::span<const KernelDef* const> kernels,
                                            std::span<KernelCall> calls) override {
    CHECK(kernels.size() == calls.size());
    for (KernelCall& call : calls) call.threads = &threads_;
    return std::unique_ptr<Launches>(std::make_unique<CpuLaunches>(kernels, calls));
  }

 private:
  DeviceFacts facts_;
  ThreadPool threads_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(int threads) {
  return std::make_unique<CpuDevice>(threads);
}

}  // namespace tenon
