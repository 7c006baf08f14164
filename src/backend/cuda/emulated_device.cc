// The device of the emulated build: host memory, kernels run by backend/cuda/emulator.h.
#ifdef TENON_CUDA_EMULATED

#include <chrono>
#include <cstring>
#include <new>
#include <vector>

#include "backend/cuda/cuda_device.h"
#include "backend/cuda/kernel_list.h"

namespace tenon {
namespace {

class HostBuffer : public DeviceBuffer {
 public:
  explicit HostBuffer(int64_t bytes)
      : DeviceBuffer(static_cast<std::byte*>(
                         ::operator new (static_cast<size_t>(bytes), std::align_val_t{kArenaAlignment})),
                     bytes) {
    std::memset(data(), 0, static_cast<size_t>(bytes));
  }
  ~HostBuffer() override { ::operator delete (data(), std::align_val_t{kArenaAlignment}); }
};

class EmulatedLaunches : public Launches {
 public:
  EmulatedLaunches(std::span<const KernelDef* const> kernels, std::span<KernelCall> calls)
      : kernels_(kernels), calls_(calls) {}

  Status prepare() {
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (kernels_[i]->prepare == nullptr) continue;
      ASSIGN_OR_RETURN(std::unique_ptr<KernelState> state, kernels_[i]->prepare(calls_[i]));
      calls_[i].state = state.get();
      states_.push_back(std::move(state));
    }
    return {};
  }
  Status run(std::span<double> timings_seconds) override {
    using Clock = std::chrono::steady_clock;
    for (size_t i = 0; i < calls_.size(); ++i) {
      const Clock::time_point start = Clock::now();
      kernels_[i]->run(calls_[i]);
      if (timings_seconds.empty()) continue;
      timings_seconds[i] = std::chrono::duration<double>(Clock::now() - start).count();
    }
    return {};
  }

 private:
  std::span<const KernelDef* const> kernels_;
  std::span<KernelCall> calls_;
  std::vector<std::unique_ptr<KernelState>> states_;
};

class EmulatedDevice : public Device {
 public:
  EmulatedDevice() {
    facts_.kind = DeviceKind::cuda;
    facts_.name = "emulated GPU";
    facts_.features = {"sm_80", "bf16"};
    facts_.memory_bytes = int64_t{4} << 30;
  }

  const DeviceFacts& facts() const override { return facts_; }
  std::span<const KernelDef> kernels() const override { return cuda::all_kernels(); }
  bool reads_host_memory() const override { return false; }
  Result<std::unique_ptr<DeviceBuffer>> allocate(int64_t bytes) override {
    return std::unique_ptr<DeviceBuffer>(std::make_unique<HostBuffer>(bytes));
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
    auto launches = std::make_unique<EmulatedLaunches>(kernels, calls);
    RETURN_IF_ERROR(launches->prepare());
    return std::unique_ptr<Launches>(std::move(launches));
  }

 private:
  DeviceFacts facts_;
};

}  // namespace

Result<std::unique_ptr<Device>> open_cuda_device(const CudaOptions& options) {
  if (options.index != 0) return bad_argument("the emulated build has one device", "--device");
  return std::unique_ptr<Device>(std::make_unique<EmulatedDevice>());
}

}  // namespace tenon

#endif
