#ifndef TENON_CUDA_EMULATED

#include "backend/cuda/gpu_memory.h"

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>

namespace tenon::cuda {
namespace {

// What is used of NVML's interface (its header is not part of every toolkit).
struct NvmlMemory {
  unsigned long long total, free, used;
};
using NvmlDevice = void*;
constexpr int kNvmlSuccess = 0;

template <typename F>
F* function_of(void* library, const char* name) {
  return reinterpret_cast<F*>(dlsym(library, name));
}

// Bytes in use on the device at a PCI address; -1 where the library is missing or does not answer.
int64_t used_bytes_at(const char* pci) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return -1;
  const auto init = function_of<int()>(library, "nvmlInit_v2");
  const auto find = function_of<int(const char*, NvmlDevice*)>(library, "nvmlDeviceGetHandleByPciBusId_v2");
  const auto ask = function_of<int(NvmlDevice, NvmlMemory*)>(library, "nvmlDeviceGetMemoryInfo");
  const auto shutdown = function_of<int()>(library, "nvmlShutdown");
  int64_t used = -1;
  if (init != nullptr && find != nullptr && ask != nullptr && shutdown != nullptr && init() == kNvmlSuccess) {
    NvmlDevice device = nullptr;
    NvmlMemory memory{};
    if (find(pci, &device) == kNvmlSuccess && ask(device, &memory) == kNvmlSuccess) {
      used = static_cast<int64_t>(memory.used);
    }
    shutdown();
  }
  dlclose(library);
  return used;
}

}  // namespace

int64_t free_bytes() {
  size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? static_cast<int64_t>(free) : 0;
}

GpuMemory GpuMemory::now(int index) {
  GpuMemory out;
  char pci[32] = {};
  if (cudaDeviceGetPCIBusId(pci, sizeof(pci), index) == cudaSuccess) {
    out.used_bytes_ = used_bytes_at(pci);
  } else {
    cudaGetLastError();  // opening the device says what is wrong
  }
  return out;
}

int64_t GpuMemory::used_since(int index) const {
  const GpuMemory after = now(index);
  if (used_bytes_ >= 0 && after.used_bytes_ >= 0)
    return std::max<int64_t>(0, after.used_bytes_ - used_bytes_);
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return 0;
  return static_cast<int64_t>(total - free);
}

}  // namespace tenon::cuda

#endif
