// The device of the emulated build: host memory, kernels run by backend/cuda/emulator.h.
#ifdef TENON_CUDA_EMULATED

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_device.h"
#include "backend/cuda/device_errors.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_resources.h"
#include "backend/cuda/loading.h"

namespace tenon {
namespace {

constexpr int kRuntime = 13000;  // CUDA's version, as a real build has it
constexpr int64_t kContextBytes = int64_t{256} << 20;
constexpr int64_t kMemoryBytes = int64_t{4} << 30;
constexpr int64_t kChunkBytes = cuda::kLeastChunkBytes;  // so that small models have many
constexpr const char* kLost = "the device was lost (emulated)";

// A fault to be had on demand, so that tests see what a failing GPU does. TENON_EMULATED_FAULT is
// "no-driver", "old-driver" or "architecture", which show when the device is opened, or "KERNEL:N": the N-th
// launch of that kernel fails, and from then on everything does. `graphs` as in CudaOptions.
struct Fault {
  std::string kernel;
  int64_t launches_left = 0;
  bool graphs = false;
  bool lost = false;

  bool strikes(const KernelDef& launched) {
    if (kernel.empty() || launched.name != kernel || --launches_left > 0) return false;
    kernel.clear();
    lost = true;
    return true;
  }
  Status device_status() const { return lost ? device_error(kLost, "emulated GPU") : Status(); }
};

std::string_view demanded_fault() {
  const char* text = std::getenv("TENON_EMULATED_FAULT");
  return text == nullptr ? std::string_view() : std::string_view(text);
}

Status fault_when_opened() {
  const std::string_view fault = demanded_fault();
  if (fault == "no-driver") return cuda::no_device_error(0, kRuntime, "");
  if (fault == "old-driver") return cuda::no_device_error(12040, kRuntime, "");
  if (fault == "architecture") return cuda::no_code_error("sm_60", "emulated GPU");
  return {};
}

Fault fault_of_kernel(bool graphs) {
  Fault fault;
  fault.graphs = graphs;
  const std::string_view text = demanded_fault();
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return fault;
  fault.kernel = text.substr(0, colon);
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), fault.launches_left);
  return fault;
}

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
  EmulatedLaunches(std::span<const KernelDef* const> kernels, std::span<KernelCall> calls, Fault& fault)
      : kernels_(kernels), calls_(calls), fault_(fault) {}

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
    RETURN_IF_ERROR(fault_.device_status());
    for (size_t i = 0; i < calls_.size(); ++i) {
      const Clock::time_point start = Clock::now();
      if (fault_.strikes(*kernels_[i])) return failure(i);
      kernels_[i]->run(calls_[i]);
      if (timings_seconds.empty()) continue;
      timings_seconds[i] = std::chrono::duration<double>(Clock::now() - start).count();
    }
    return {};
  }

 private:
  Error failure(size_t i) const {
    if (!fault_.graphs) return cuda::failed_launch_error(kLost, *kernels_[i], calls_[i]);
    return cuda::failed_graph_error(kLost, kernels_, calls_, i);
  }

  std::span<const KernelDef* const> kernels_;
  std::span<KernelCall> calls_;
  Fault& fault_;
  std::vector<std::unique_ptr<KernelState>> states_;
};

class EmulatedDevice : public Device {
 public:
  explicit EmulatedDevice(bool graphs) : fault_(fault_of_kernel(graphs)) {
    facts_.kind = DeviceKind::cuda;
    facts_.name = "emulated GPU";
    facts_.features = {"sm_90", "bf16"};
    facts_.memory_bytes = kMemoryBytes;
  }

  const DeviceFacts& facts() const override { return facts_; }
  std::span<const KernelDef> kernels() const override { return cuda::all_kernels(); }
  bool reads_host_memory() const override { return false; }
  DeviceMemoryUse memory_use() const override {
    return {kContextBytes, kContextBytes + allocated_bytes_, kChunkBytes, kChunkBytes};
  }
  Result<std::unique_ptr<DeviceBuffer>> allocate(int64_t bytes) override {
    RETURN_IF_ERROR(fault_.device_status());
    allocated_bytes_ += bytes;
    return std::unique_ptr<DeviceBuffer>(std::make_unique<HostBuffer>(bytes));
  }
  Status upload(std::byte* to_device, std::span<const std::byte> from_host) override {
    RETURN_IF_ERROR(fault_.device_status());
    if (!from_host.empty()) std::memcpy(to_device, from_host.data(), from_host.size());
    return {};
  }
  Status load(std::byte* to, DType dtype, std::span<const StoredPart> parts) override {
    RETURN_IF_ERROR(fault_.device_status());
    alignas(cuda::kPackedRowAlignment) std::byte packed[kChunkBytes];
    const auto send = [&](const cuda::Chunk& chunk) {
      loaded_bytes_ += chunk.bytes();
      std::byte* const at = chunk.part->unchanged ? to + chunk.to_bytes : packed;
      cuda::pack(chunk, {0, cuda::pack_units(chunk)}, at);
      if (at == packed) cuda::launch_unpack(nullptr, chunk, packed, to, dtype, loads_, &not_finite_);
      return Status();
    };
    for (const StoredPart& part : parts) {
      RETURN_IF_ERROR(cuda::for_each_chunk(part, dtype, kChunkBytes, send));
    }
    ++loads_;
    return {};
  }
  Result<Loaded> finish_loading() override {
    RETURN_IF_ERROR(fault_.device_status());
    loads_ = 0;
    return cuda::loaded_report(std::exchange(loaded_bytes_, 0), std::exchange(not_finite_, cuda::kAllFinite));
  }
  Status download(std::span<std::byte> to_host, const std::byte* from_device) override {
    RETURN_IF_ERROR(fault_.device_status());
    if (!to_host.empty()) std::memcpy(to_host.data(), from_device, to_host.size());
    return {};
  }
  Result<std::unique_ptr<Launches>> prepare(std::span<const KernelDef* const> kernels,
                                            std::span<KernelCall> calls) override {
    auto launches = std::make_unique<EmulatedLaunches>(kernels, calls, fault_);
    RETURN_IF_ERROR(launches->prepare());
    return std::unique_ptr<Launches>(std::move(launches));
  }

 private:
  DeviceFacts facts_;
  Fault fault_;
  int64_t loads_ = 0, loaded_bytes_ = 0;
  unsigned long long not_finite_ = cuda::kAllFinite;
  int64_t allocated_bytes_ = 0;  // by now, given back or not
};

}  // namespace

std::span<const cuda::KernelResources> cuda::kernel_resources() {
  return {};
}

Result<std::unique_ptr<Device>> open_cuda_device(const CudaOptions& options) {
  RETURN_IF_ERROR(fault_when_opened());
  if (options.index != 0) return cuda::no_such_device_error(options.index, 1);
  return std::unique_ptr<Device>(std::make_unique<EmulatedDevice>(options.graphs));
}

}  // namespace tenon

#endif
