#ifndef TENON_CUDA_EMULATED

#include "backend/cuda/cuda_facts.h"

namespace tenon::cuda {
namespace {

__global__ void nothing() {}

}  // namespace

cudaError_t check_kernel_image() {
  cudaFuncAttributes attributes;
  const cudaError_t status = cudaFuncGetAttributes(&attributes, nothing);
  if (status != cudaSuccess) cudaGetLastError();  // not sticky: cleared
  return status;
}

}  // namespace tenon::cuda

#endif
