// The calls of a program on a GPU, launched one by one or as one captured graph.
#pragma once

#include <cuda_runtime.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"

namespace tenon::cuda {

class CudaLaunches : public Launches {
 public:
  // `mark`: pinned host memory that the device can write and that outlives this.
  CudaLaunches(std::span<const KernelDef* const> kernels, std::span<KernelCall> calls, cudaStream_t stream,
               bool graphs, volatile int32_t* mark, std::string device);
  ~CudaLaunches() override;
  CudaLaunches(const CudaLaunches&) = delete;
  CudaLaunches& operator=(const CudaLaunches&) = delete;

  // Fixes what kernels want fixed for their calls, and with graphs captures all of them.
  Status prepare();
  Status run(std::span<double> timings_seconds) override;

 private:
  Status launch(size_t i);
  Status capture();
  Status run_graph();
  Status run_timed(std::span<double> timings_seconds);

  std::span<const KernelDef* const> kernels_;
  std::span<KernelCall> calls_;
  cudaStream_t stream_;
  bool graphs_;
  volatile int32_t* mark_;
  std::string device_;
  std::vector<std::unique_ptr<KernelState>> states_;
  std::vector<cudaEvent_t> events_;
  cudaGraphExec_t graph_ = nullptr;
};

// Writes how many launches are done; in kernel_image.cu.
void launch_mark(cudaStream_t stream, volatile int32_t* mark, int32_t done);

}  // namespace tenon::cuda
