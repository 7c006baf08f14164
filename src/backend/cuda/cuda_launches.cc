#ifndef TENON_CUDA_EMULATED

#include "backend/cuda/cuda_launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backend/cuda/cuda_status.h"
#include "backend/cuda/device_errors.h"
#include "backend/cuda/gemm.h"
#include "base/check.h"

namespace tenon::cuda {

CudaLaunches::CudaLaunches(std::span<const KernelDef* const> kernels, std::span<KernelCall> calls,
                           cudaStream_t stream, bool graphs, volatile int32_t* mark, std::string device)
    : kernels_(kernels),
      calls_(calls),
      stream_(stream),
      graphs_(graphs),
      mark_(mark),
      device_(std::move(device)) {}

CudaLaunches::~CudaLaunches() {
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
}

Status CudaLaunches::prepare() {
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

Status CudaLaunches::run(std::span<double> timings_seconds) {
  CHECK(timings_seconds.empty() || timings_seconds.size() == calls_.size());
  if (!timings_seconds.empty()) return run_timed(timings_seconds);
  if (graph_ != nullptr) return run_graph();
  for (size_t i = 0; i < calls_.size(); ++i) {
    RETURN_IF_ERROR(launch(i));
    const cudaError_t status = cudaStreamSynchronize(stream_);
    if (status != cudaSuccess) {
      return failed_launch_error(cudaGetErrorString(status), *kernels_[i], calls_[i]);
    }
  }
  return {};
}

Status CudaLaunches::launch(size_t i) {
  kernels_[i]->run(calls_[i]);
  if (const char* refused = take_launch_failure()) {
    return device_error(fmt::format("cuBLASLt refused it: {}", refused), call_text(*kernels_[i], calls_[i]));
  }
  RETURN_IF_CUDA_ERROR(cudaPeekAtLastError(), "it does not start", call_text(*kernels_[i], calls_[i]));
  return {};
}

Status CudaLaunches::capture() {
  RETURN_IF_CUDA_ERROR(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capturing a graph",
                       device_);
  Status launched;
  for (size_t i = 0; launched.ok() && i < calls_.size(); ++i) {
    if (i % kLaunchesPerMark == 0) launch_mark(stream_, mark_, static_cast<int32_t>(i));
    launched = launch(i);
  }
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

Status CudaLaunches::run_graph() {
  *mark_ = 0;
  RETURN_IF_CUDA_ERROR(cudaGraphLaunch(graph_, stream_), "a program's graph does not start", device_);
  const cudaError_t status = cudaStreamSynchronize(stream_);
  if (status == cudaSuccess) return {};
  return failed_graph_error(cudaGetErrorString(status), kernels_, calls_, static_cast<size_t>(*mark_));
}

Status CudaLaunches::run_timed(std::span<double> timings_seconds) {
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
                       "a kernel of a timed run failed (--graphs off names it)", device_);
  for (size_t i = 0; i < calls_.size(); ++i) {
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, events_[i], events_[i + 1]);
    timings_seconds[i] = static_cast<double>(milliseconds) * 1e-3;
  }
  return {};
}

}  // namespace tenon::cuda

#endif
