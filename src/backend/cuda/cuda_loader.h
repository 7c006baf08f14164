// Brings host memory to a GPU through a ring of pinned buffers: host threads fill one while others travel,
// and kernels unpack what has arrived. One per device; not for several threads.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "backend/cuda/loading.h"
#include "base/error.h"
#include "base/threads.h"
#include "device/device.h"

namespace tenon::cuda {

class CudaLoader {
 public:
  // `stream` is the one that kernels run on; it must outlive the loader.
  CudaLoader(cudaStream_t stream, std::string device) : stream_(stream), device_(std::move(device)) {}
  ~CudaLoader();
  CudaLoader(const CudaLoader&) = delete;
  CudaLoader& operator=(const CudaLoader&) = delete;

  // Pins the ring.
  Status start();
  // Copies to the device in the order of the stream; `from_host` may change once it returns.
  Status upload(std::byte* to_device, std::span<const std::byte> from_host);
  // As Device has them.
  Status load(std::byte* to, DType dtype, std::span<const StoredPart> parts);
  Result<Loaded> finish();

  static constexpr int kSlots = 3;
  static constexpr int64_t kSlotBytes = 16 << 20;
  static constexpr int64_t kPinnedBytes = kSlots * kSlotBytes;
  static constexpr int64_t kLandingBytes =
      kSlots * kSlotBytes + 64;  // and where the first bad value is noted

 private:
  struct Slot {
    std::byte* pinned = nullptr;
    cudaEvent_t arrived = nullptr;  // of what travels to the slot's part of the landing
    cudaEvent_t free = nullptr;
  };

  Result<Slot*> next_slot();
  Status send(const Chunk& chunk, std::byte* to, DType dtype);
  Status land();  // takes the landing
  void fill(std::byte* pinned, const Chunk& chunk);

  cudaStream_t stream_;
  cudaStream_t copies_ = nullptr;  // weights travel here, beside the kernels
  std::string device_;
  std::array<Slot, kSlots> slots_;
  int turn_ = 0;
  std::byte* landing_ = nullptr;  // on the device while weights are loaded that need it
  int64_t loads_ = 0, bytes_ = 0;
  std::optional<ThreadPool> threads_;  // once something large is loaded
};

}  // namespace tenon::cuda
