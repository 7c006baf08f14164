// Brings host memory to a GPU through pinned buffers: each of several host threads fills one of its own while
// another travels, and kernels unpack what has arrived. The buffers are few enough to stay in the host's
// cache. One per device; not for several threads.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

  // Pins the buffers; on the thread whose device it is.
  Status start();
  // Copies to the device in the order of the stream; `from_host` may change once it returns.
  Status upload(std::byte* to_device, std::span<const std::byte> from_host);
  // As Device has them: what is given to load() travels in finish().
  void load(std::byte* to, DType dtype, std::span<const StoredPart> parts);
  Result<Loaded> finish();

  static constexpr int kSlotsOfThread = 2;
  static constexpr int kSlots = kMostLoadingThreads * kSlotsOfThread;
  static constexpr int64_t kSlotBytes = 4 << 20;
  static constexpr int64_t kPinnedBytes = kSlots * kSlotBytes;
  static constexpr int64_t kLandingBytes = kPinnedBytes + 64;  // and where the first bad value is noted

 private:
  struct Slot {
    std::byte* pinned = nullptr;
    cudaEvent_t free = nullptr;
  };
  // What is sent in one go.
  struct Piece {
    Chunk chunk;
    std::byte* to = nullptr;  // the weight
    DType dtype = DType::f32;
    int64_t load = 0;
  };

  Status land();  // takes the landing
  Status send_all();
  Status send_some(int thread, std::atomic<size_t>& next);
  Status send(int thread, Slot& slot, const Piece& piece);
  void share_copy(std::byte* pinned, std::span<const std::byte> from_host);
  ThreadPool& threads();

  cudaStream_t stream_;
  std::string device_;
  int index_ = 0;
  std::array<Slot, kSlots> slots_;
  int turn_ = 0;                                             // the slot that upload() takes next
  std::array<cudaStream_t, kMostLoadingThreads> streams_{};  // of each thread that loads
  std::byte* landing_ = nullptr;  // on the device while weights are loaded that need it
  std::deque<StoredPart> parts_;
  std::vector<Piece> pieces_;
  int64_t loads_ = 0, bytes_ = 0;
  std::optional<ThreadPool> threads_;  // once something large is loaded
};

}  // namespace tenon::cuda
