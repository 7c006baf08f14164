#ifndef TENON_CUDA_EMULATED

#include "backend/cuda/cuda_device.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "backend/cuda/cublaslt.h"
#include "backend/cuda/cuda_facts.h"
#include "backend/cuda/cuda_launches.h"
#include "backend/cuda/cuda_status.h"
#include "backend/cuda/gpu_memory.h"
#include "backend/cuda/kernel_list.h"
#include "base/check.h"
#include "base/threads.h"

namespace tenon {
namespace {

class CudaBuffer : public DeviceBuffer {
 public:
  CudaBuffer(std::byte* data, int64_t bytes) : DeviceBuffer(data, bytes) {}
  ~CudaBuffer() override { cudaFree(data()); }
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;
};

constexpr int64_t kStagingBytes = 32 << 20;  // of each of two pinned buffers
constexpr int kMostCopyThreads = 8;
constexpr size_t kBytesForThreads = 1 << 20;  // from here on a copy is shared
constexpr int64_t kCodeBytes = 256 << 20;  // left for kernels, which are loaded when first used, and graphs

class CudaDevice : public Device {
 public:
  CudaDevice(DeviceFacts facts, const CudaOptions& options, cuda::GpuMemory before)
      : facts_(std::move(facts)), graphs_(options.graphs), index_(options.index), gpu_bytes_before_(before) {}
  ~CudaDevice() override {
    for (int i = 0; i < 2; ++i) {
      if (staged_[i] != nullptr) cudaEventDestroy(staged_[i]);
      if (staging_[i] != nullptr) cudaFreeHost(staging_[i]);
    }
    if (mark_ != nullptr) cudaFreeHost(mark_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  Status start() {
    RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream",
                         facts_.name);
    for (int i = 0; i < 2; ++i) {
      RETURN_IF_CUDA_ERROR(cudaMallocHost(&staging_[i], kStagingBytes), "pinning host memory", facts_.name);
      RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&staged_[i], cudaEventDisableTiming), "making an event",
                           facts_.name);
    }
    RETURN_IF_CUDA_ERROR(cudaHostAlloc(&mark_, sizeof(int32_t), cudaHostAllocMapped), "pinning host memory",
                         facts_.name);
    return measure_context();
  }

  const DeviceFacts& facts() const override { return facts_; }
  std::span<const KernelDef> kernels() const override { return cuda::all_kernels(); }
  bool reads_host_memory() const override { return false; }

  DeviceMemoryUse memory_use() const override {
    const int64_t since = free_at_start_ - cuda::free_bytes();
    return {context_bytes_, context_bytes_ + since};
  }

  Result<std::unique_ptr<DeviceBuffer>> allocate(int64_t bytes) override {
    CHECK(bytes >= 0);
    void* data = nullptr;
    const cudaError_t status = cudaMalloc(&data, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
    if (status != cudaSuccess) {
      cudaGetLastError();  // not sticky: the device can be used on
      return device_error(fmt::format("it gives no block of {} bytes: {}", bytes, cudaGetErrorString(status)),
                          facts_.name, "End other programs on it, or plan for a smaller budget.");
    }
    auto buffer = std::make_unique<CudaBuffer>(static_cast<std::byte*>(data), bytes);
    RETURN_IF_CUDA_ERROR(cudaMemsetAsync(data, 0, static_cast<size_t>(bytes), stream_), "clearing memory",
                         facts_.name);
    RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_), "clearing memory", facts_.name);
    return std::unique_ptr<DeviceBuffer>(std::move(buffer));
  }

  // Through two pinned buffers by turns: one is filled, by several threads since one does not keep the bus
  // busy, while the other travels.
  Status upload(std::byte* to_device, std::span<const std::byte> from_host) override {
    for (int turn = 0; !from_host.empty(); turn = 1 - turn) {
      const size_t bytes = std::min<size_t>(from_host.size(), kStagingBytes);
      RETURN_IF_CUDA_ERROR(cudaEventSynchronize(staged_[turn]), "copying to the device", facts_.name);
      copy_by_threads(staging_[turn], from_host.first(bytes));
      RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(to_device, staging_[turn], bytes, cudaMemcpyHostToDevice, stream_),
                           "copying to the device", facts_.name);
      RETURN_IF_CUDA_ERROR(cudaEventRecord(staged_[turn], stream_), "copying to the device", facts_.name);
      to_device += bytes;
      from_host = from_host.subspan(bytes);
    }
    return {};
  }

  Status download(std::span<std::byte> to_host, const std::byte* from_device) override {
    if (to_host.empty()) return {};
    RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(to_host.data(), from_device, to_host.size(), cudaMemcpyDeviceToHost, stream_),
        "copying from the device", facts_.name);
    RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_), "copying from the device", facts_.name);
    return {};
  }

  Result<std::unique_ptr<Launches>> prepare(std::span<const KernelDef* const> kernels,
                                            std::span<KernelCall> calls) override {
    CHECK(kernels.size() == calls.size());
    auto launches = std::make_unique<cuda::CudaLaunches>(kernels, calls, stream_, graphs_,
                                                         static_cast<volatile int32_t*>(mark_), facts_.name);
    RETURN_IF_ERROR(launches->prepare());
    return std::unique_ptr<Launches>(std::move(launches));
  }

 private:
  void copy_by_threads(void* to, std::span<const std::byte> from) {
    if (from.size() < kBytesForThreads) {
      std::memcpy(to, from.data(), from.size());
      return;
    }
    if (!copiers_) copiers_.emplace(std::min(kMostCopyThreads, available_threads()));
    copiers_->parallel_for(static_cast<int64_t>(from.size()), kArenaAlignment, [&](Range range) {
      std::memcpy(static_cast<std::byte*>(to) + range.begin, from.data() + range.begin,
                  static_cast<size_t>(range.size()));
    });
  }

  // The context, with streams, pinned buffers and libraries in place, is what the GPU holds more than before
  // it was opened; what is left is what can be planned for.
  Status measure_context() {
    free_at_start_ = cuda::free_bytes();
    context_bytes_ = gpu_bytes_before_.used_since(index_);
    facts_.memory_bytes = std::max<int64_t>(0, free_at_start_ - kCodeBytes);
    return {};
  }

  DeviceFacts facts_;
  bool graphs_;
  int index_;
  cuda::GpuMemory gpu_bytes_before_;
  int64_t free_at_start_ = 0, context_bytes_ = 0;
  void* mark_ = nullptr;  // how far a graph has come
  cudaStream_t stream_ = nullptr;
  std::optional<ThreadPool> copiers_;  // once something large is loaded
  void* staging_[2] = {};
  cudaEvent_t staged_[2] = {};
};

}  // namespace

Result<std::unique_ptr<Device>> open_cuda_device(const CudaOptions& options) {
  const cuda::GpuMemory before = cuda::GpuMemory::now(options.index);
  ASSIGN_OR_RETURN(DeviceFacts facts, cuda::open_and_describe(options.index));
  RETURN_IF_ERROR(cuda::load_cublaslt());
  auto device = std::make_unique<CudaDevice>(std::move(facts), options, before);
  RETURN_IF_ERROR(device->start());
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace tenon

#endif
