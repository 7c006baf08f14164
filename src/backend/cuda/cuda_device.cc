#ifndef TENON_CUDA_EMULATED

#include "backend/cuda/cuda_device.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "backend/cuda/cublaslt.h"
#include "backend/cuda/cuda_facts.h"
#include "backend/cuda/cuda_launches.h"
#include "backend/cuda/cuda_loader.h"
#include "backend/cuda/cuda_status.h"
#include "backend/cuda/gpu_memory.h"
#include "backend/cuda/kernel_list.h"
#include "base/check.h"

namespace tenon {
namespace {

class CudaBuffer : public DeviceBuffer {
 public:
  CudaBuffer(std::byte* data, int64_t bytes) : DeviceBuffer(data, bytes) {}
  ~CudaBuffer() override { cudaFree(data()); }
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;
};

constexpr int64_t kCodeBytes = 256 << 20;  // left for kernels, which are loaded when first used, and graphs

class CudaDevice : public Device {
 public:
  CudaDevice(DeviceFacts facts, const CudaOptions& options, cuda::GpuMemory before)
      : facts_(std::move(facts)), graphs_(options.graphs), index_(options.index), gpu_bytes_before_(before) {}
  ~CudaDevice() override {
    loader_.reset();
    if (mark_ != nullptr) cudaFreeHost(mark_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  Status start() {
    RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream",
                         facts_.name);
    loader_.emplace(stream_, facts_.name);
    RETURN_IF_ERROR(loader_->start());
    RETURN_IF_CUDA_ERROR(cudaHostAlloc(&mark_, sizeof(int32_t), cudaHostAllocMapped), "pinning host memory",
                         facts_.name);
    return measure_context();
  }

  const DeviceFacts& facts() const override { return facts_; }
  std::span<const KernelDef> kernels() const override { return cuda::all_kernels(); }
  bool reads_host_memory() const override { return false; }

  DeviceMemoryUse memory_use() const override {
    const int64_t since = free_at_start_ - cuda::free_bytes();
    return {context_bytes_, context_bytes_ + since, cuda::CudaLoader::kPinnedBytes,
            cuda::CudaLoader::kLandingBytes};
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

  Status upload(std::byte* to_device, std::span<const std::byte> from_host) override {
    return loader_->upload(to_device, from_host);
  }
  Status load(std::byte* to, DType dtype, std::span<const StoredPart> parts) override {
    loader_->load(to, dtype, parts);
    return {};
  }
  Result<Loaded> finish_loading() override { return loader_->finish(); }

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
  std::optional<cuda::CudaLoader> loader_;
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
