#ifndef TENON_CUDA_EMULATED

#include "backend/cuda/cuda_loader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/cuda/cuda_status.h"
#include "base/check.h"

namespace tenon::cuda {
namespace {

constexpr int64_t kBytesForThreads = 1 << 20;  // from here on a copy is shared
constexpr const char* kCopying = "copying to the device";

}  // namespace

CudaLoader::~CudaLoader() {
  for (const Slot& slot : slots_) {
    if (slot.free != nullptr) cudaEventDestroy(slot.free);
  }
  if (slots_[0].pinned != nullptr) cudaFreeHost(slots_[0].pinned);
  if (landing_ != nullptr) cudaFree(landing_);
  for (cudaStream_t stream : streams_) {
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
}

Status CudaLoader::start() {
  RETURN_IF_CUDA_ERROR(cudaGetDevice(&index_), "finding the device", device_);
  for (cudaStream_t& stream : streams_) {
    RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream",
                         device_);
  }
  std::byte* pinned = nullptr;
  RETURN_IF_CUDA_ERROR(cudaMallocHost(&pinned, kPinnedBytes), "pinning host memory", device_);
  for (Slot& slot : slots_) {
    slot.pinned = std::exchange(pinned, pinned + kSlotBytes);
    RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(&slot.free, cudaEventDisableTiming), "making an event",
                         device_);
  }
  return {};
}

ThreadPool& CudaLoader::threads() {
  if (!threads_) threads_.emplace(std::min(kMostLoadingThreads, available_threads()));
  return *threads_;
}

void CudaLoader::share_copy(std::byte* pinned, std::span<const std::byte> from_host) {
  const auto copy = [&](Range range) {
    std::memcpy(pinned + range.begin, from_host.data() + range.begin, static_cast<size_t>(range.size()));
  };
  const auto bytes = static_cast<int64_t>(from_host.size());
  if (bytes < kBytesForThreads) return copy({0, bytes});
  threads().parallel_for(bytes, 4096, copy);
}

Status CudaLoader::upload(std::byte* to_device, std::span<const std::byte> from_host) {
  while (!from_host.empty()) {
    const std::span<const std::byte> piece = from_host.first(std::min<size_t>(from_host.size(), kSlotBytes));
    Slot& slot = slots_[static_cast<size_t>(turn_)];
    turn_ = (turn_ + 1) % kSlots;
    RETURN_IF_CUDA_ERROR(cudaEventSynchronize(slot.free), kCopying, device_);
    share_copy(slot.pinned, piece);
    RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(to_device, slot.pinned, piece.size(), cudaMemcpyHostToDevice, stream_), kCopying,
        device_);
    RETURN_IF_CUDA_ERROR(cudaEventRecord(slot.free, stream_), kCopying, device_);
    to_device += piece.size();
    from_host = from_host.subspan(piece.size());
  }
  return {};
}

void CudaLoader::load(std::byte* to, DType dtype, std::span<const StoredPart> parts) {
  for (const StoredPart& given : parts) {
    const StoredPart& part = parts_.emplace_back(given);
    const Status kept = for_each_chunk(part, dtype, kSlotBytes, [&](const Chunk& chunk) {
      pieces_.push_back({chunk, to, dtype, loads_});
      bytes_ += chunk.bytes();
      return Status();
    });
    CHECK(kept.ok());
  }
  ++loads_;
}

Status CudaLoader::land() {
  RETURN_IF_CUDA_ERROR(cudaMalloc(&landing_, kLandingBytes), "making room to load through", device_);
  RETURN_IF_CUDA_ERROR(cudaMemsetAsync(landing_ + kPinnedBytes, 0xff, sizeof(kAllFinite), stream_),
                       "clearing memory", device_);
  return {};
}

Status CudaLoader::send(int thread, Slot& slot, const Piece& piece) {
  const Chunk& chunk = piece.chunk;
  const cudaStream_t stream = streams_[static_cast<size_t>(thread)];
  const bool unchanged = chunk.part->unchanged;
  std::byte* const arrival =
      unchanged ? piece.to + chunk.to_bytes : landing_ + (slot.pinned - slots_[0].pinned);
  RETURN_IF_CUDA_ERROR(cudaEventSynchronize(slot.free), kCopying, device_);
  pack(chunk, {0, pack_units(chunk)}, slot.pinned);
  RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(arrival, slot.pinned, static_cast<size_t>(chunk.bytes()),
                                       cudaMemcpyHostToDevice, stream),
                       kCopying, device_);
  if (!unchanged) {
    launch_unpack(stream, chunk, arrival, piece.to, piece.dtype, piece.load,
                  reinterpret_cast<unsigned long long*>(landing_ + kPinnedBytes));
    RETURN_IF_CUDA_ERROR(cudaPeekAtLastError(), "converting weights", device_);
  }
  RETURN_IF_CUDA_ERROR(cudaEventRecord(slot.free, stream), kCopying, device_);
  return {};
}

// One piece after the other that no thread has taken.
Status CudaLoader::send_some(int thread, std::atomic<size_t>& next) {
  RETURN_IF_CUDA_ERROR(cudaSetDevice(index_), "choosing the device", device_);
  int turn = 0;
  for (size_t i = next++; i < pieces_.size(); i = next++) {
    Slot& slot = slots_[static_cast<size_t>(thread * kSlotsOfThread + turn)];
    RETURN_IF_ERROR(send(thread, slot, pieces_[i]));
    turn = (turn + 1) % kSlotsOfThread;
  }
  return {};
}

Status CudaLoader::send_all() {
  const bool lands =
      std::any_of(pieces_.begin(), pieces_.end(), [](const Piece& p) { return !p.chunk.part->unchanged; });
  if (lands) RETURN_IF_ERROR(land());
  // What was started before is done: threads have streams of their own.
  RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_), kCopying, device_);
  std::atomic<size_t> next = 0;
  std::array<Status, kMostLoadingThreads> sent;
  if (bytes_ < kBytesForThreads) {
    sent[0] = send_some(0, next);
  } else {
    threads().run([&](int thread) { sent[static_cast<size_t>(thread)] = send_some(thread, next); });
  }
  for (Status& status : sent) RETURN_IF_ERROR(std::move(status));
  for (cudaStream_t stream : streams_) {
    RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream), "loading weights", device_);
  }
  return {};
}

Result<Loaded> CudaLoader::finish() {
  const Status sent = send_all();
  const int64_t bytes = std::exchange(bytes_, 0);
  pieces_ = {};
  parts_.clear();
  loads_ = 0;
  RETURN_IF_ERROR(sent);
  unsigned long long first = kAllFinite;
  if (landing_ != nullptr) {
    RETURN_IF_CUDA_ERROR(cudaMemcpy(&first, landing_ + kPinnedBytes, sizeof(first), cudaMemcpyDeviceToHost),
                         kCopying, device_);
    cudaFree(std::exchange(landing_, nullptr));
  }
  return loaded_report(bytes, first);
}

}  // namespace tenon::cuda

#endif
