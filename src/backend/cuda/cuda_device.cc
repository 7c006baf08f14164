#ifndef TENON_CUDA_EMULATED

#include "backend/cuda/cuda_device.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "backend/cuda/cublaslt.h"
#include "backend/cuda/cuda_facts.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/kernel_list.h"
#include "base/check.h"

namespace tenon {
namespace {

using cuda::runtime_error;

#define RETURN_IF_CUDA_ERROR(call, what, subject)                                 \
  do {                                                                            \
    if (const cudaError_t tenon_status_ = (call); tenon_status_ != cudaSuccess) { \
      return runtime_error(tenon_status_, what, subject);                         \
    }                                                                             \
  } while (false)

std::string call_text(const KernelDef& kernel, const KernelCall& call) {
  std::string types;
  for (const TensorView& view : call.inputs) types += (types.empty() ? "" : ", ") + view.type.text();
  return fmt::format("{}: kernel {}({})", call.step.empty() ? kernel.op : call.step, kernel.name, types);
}

class CudaBuffer : public DeviceBuffer {
 public:
  CudaBuffer(std::byte* data, int64_t bytes) : DeviceBuffer(data, bytes) {}
  ~CudaBuffer() override { cudaFree(data()); }
  CudaBuffer(const CudaBuffer&) = delete;
  CudaBuffer& operator=(const CudaBuffer&) = delete;
};

// The calls of a program, and with graphs the graph that they were captured into.
class CudaLaunches : public Launches {
 public:
  CudaLaunches(std::span<const KernelDef* const> kernels, std::span<KernelCall> calls, cudaStream_t stream,
               bool graphs, std::string device)
      : kernels_(kernels), calls_(calls), stream_(stream), graphs_(graphs), device_(std::move(device)) {}
  ~CudaLaunches() override {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  CudaLaunches(const CudaLaunches&) = delete;
  CudaLaunches& operator=(const CudaLaunches&) = delete;

  Status prepare() {
    for (size_t i = 0; i < calls_.size(); ++i) {
      calls_[i].stream = stream_;
      if (kernels_[i]->prepare == nullptr) continue;
      Result<std::unique_ptr<KernelState>> state = kernels_[i]->prepare(calls_[i]);
      if (!state.ok()) return std::move(state).error().within(call_text(*kernels_[i], calls_[i]));
      calls_[i].state = state->get();
      states_.push_back(std::move(state).value());
    }
    return graphs_ && !calls_.empty() ? capture() : Status();
  }

  Status run(std::span<double> timings_seconds) override {
    CHECK(timings_seconds.empty() || timings_seconds.size() == calls_.size());
    if (!timings_seconds.empty()) return run_timed(timings_seconds);
    if (graph_ != nullptr) {
      RETURN_IF_CUDA_ERROR(cudaGraphLaunch(graph_, stream_), "a program's graph does not start", device_);
      RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_),
                           "a kernel of a program failed (--graphs off names it)", device_);
      return {};
    }
    for (size_t i = 0; i < calls_.size(); ++i) {
      RETURN_IF_ERROR(launch(i));
      RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_), "it failed", call_text(*kernels_[i], calls_[i]));
    }
    return {};
  }

 private:
  Status launch(size_t i) {
    kernels_[i]->run(calls_[i]);
    if (const char* refused = cuda::take_launch_failure()) {
      return device_error(fmt::format("cuBLASLt refused it: {}", refused),
                          call_text(*kernels_[i], calls_[i]));
    }
    RETURN_IF_CUDA_ERROR(cudaPeekAtLastError(), "it does not start", call_text(*kernels_[i], calls_[i]));
    return {};
  }

  Status capture() {
    RETURN_IF_CUDA_ERROR(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                         "capturing a graph", device_);
    Status launched;
    for (size_t i = 0; launched.ok() && i < calls_.size(); ++i) launched = launch(i);
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream_, &graph);
    if (launched.ok() && ended == cudaSuccess) {
      const cudaError_t made = cudaGraphInstantiate(&graph_, graph, 0);
      if (made != cudaSuccess) launched = runtime_error(made, "making a graph", device_);
    } else if (launched.ok()) {
      launched = runtime_error(ended, "capturing a graph", device_);
    }
    if (graph != nullptr) cudaGraphDestroy(graph);
    return launched;
  }

  Status run_timed(std::span<double> timings_seconds) {
    while (events_.size() <= calls_.size()) {
      cudaEvent_t event = nullptr;
      RETURN_IF_CUDA_ERROR(cudaEventCreate(&event), "making an event", device_);
      events_.push_back(event);
    }
    cudaEventRecord(events_[0], stream_);
    for (size_t i = 0; i < calls_.size(); ++i) {
      RETURN_IF_ERROR(launch(i));
      cudaEventRecord(events_[i + 1], stream_);
    }
    RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_),
                         "a kernel of a program failed (--graphs off names it)", device_);
    for (size_t i = 0; i < calls_.size(); ++i) {
      float milliseconds = 0;
      cudaEventElapsedTime(&milliseconds, events_[i], events_[i + 1]);
      timings_seconds[i] = static_cast<double>(milliseconds) * 1e-3;
    }
    return {};
  }

  std::span<const KernelDef* const> kernels_;
  std::span<KernelCall> calls_;
  cudaStream_t stream_;
  bool graphs_;
  std::string device_;
  std::vector<std::unique_ptr<KernelState>> states_;
  std::vector<cudaEvent_t> events_;
  cudaGraphExec_t graph_ = nullptr;
};

constexpr int64_t kStagingBytes = 32 << 20;  // of each of two pinned buffers

class CudaDevice : public Device {
 public:
  CudaDevice(DeviceFacts facts, bool graphs) : facts_(std::move(facts)), graphs_(graphs) {}
  ~CudaDevice() override {
    for (int i = 0; i < 2; ++i) {
      if (staged_[i] != nullptr) cudaEventDestroy(staged_[i]);
      if (staging_[i] != nullptr) cudaFreeHost(staging_[i]);
    }
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
    return {};
  }

  const DeviceFacts& facts() const override { return facts_; }
  std::span<const KernelDef> kernels() const override { return cuda::all_kernels(); }
  bool reads_host_memory() const override { return false; }

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

  // Through two pinned buffers by turns: one is filled while the other travels.
  Status upload(std::byte* to_device, std::span<const std::byte> from_host) override {
    for (int turn = 0; !from_host.empty(); turn = 1 - turn) {
      const size_t bytes = std::min<size_t>(from_host.size(), kStagingBytes);
      RETURN_IF_CUDA_ERROR(cudaEventSynchronize(staged_[turn]), "copying to the device", facts_.name);
      std::memcpy(staging_[turn], from_host.data(), bytes);
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
    auto launches = std::make_unique<CudaLaunches>(kernels, calls, stream_, graphs_, facts_.name);
    RETURN_IF_ERROR(launches->prepare());
    return std::unique_ptr<Launches>(std::move(launches));
  }

 private:
  DeviceFacts facts_;
  bool graphs_;
  cudaStream_t stream_ = nullptr;
  void* staging_[2] = {};
  cudaEvent_t staged_[2] = {};
};

}  // namespace

Result<std::unique_ptr<Device>> open_cuda_device(const CudaOptions& options) {
  ASSIGN_OR_RETURN(DeviceFacts facts, cuda::open_and_describe(options.index));
  RETURN_IF_ERROR(cuda::load_cublaslt());
  auto device = std::make_unique<CudaDevice>(std::move(facts), options.graphs);
  RETURN_IF_ERROR(device->start());
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace tenon

#endif
