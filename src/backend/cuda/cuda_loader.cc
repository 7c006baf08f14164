#ifndef TENON_CUDA_EMULATED

#include "backend/cuda/cuda_loader.h"

#include <algorithm>
#include <cstring>

#include "backend/cuda/cuda_status.h"

namespace tenon::cuda {
namespace {

constexpr int64_t kBytesForThreads = 1 << 20;  // from here on a copy is shared
constexpr const char* kCopying = "copying to the device";

}  // namespace

CudaLoader::~CudaLoader() {
  for (const Slot& slot : slots_) {
    if (slot.arrived != nullptr) cudaEventDestroy(slot.arrived);
    if (slot.free != nullptr) cudaEventDestroy(slot.free);
    if (slot.pinned != nullptr) cudaFreeHost(slot.pinned);
  }
  if (landing_ != nullptr) cudaFree(landing_);
  if (copies_ != nullptr) cudaStreamDestroy(copies_);
}

Status CudaLoader::start() {
  RETURN_IF_CUDA_ERROR(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "making a stream",
                       device_);
  for (Slot& slot : slots_) {
    RETURN_IF_CUDA_ERROR(cudaMallocHost(&slot.pinned, kSlotBytes), "pinning host memory", device_);
    for (cudaEvent_t* event : {&slot.arrived, &slot.free}) {
      RETURN_IF_CUDA_ERROR(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "making an event",
                           device_);
    }
  }
  return {};
}

Result<CudaLoader::Slot*> CudaLoader::next_slot() {
  Slot& slot = slots_[static_cast<size_t>(turn_)];
  turn_ = (turn_ + 1) % kSlots;
  RETURN_IF_CUDA_ERROR(cudaEventSynchronize(slot.free), kCopying, device_);
  return &slot;
}

// By several threads, since one does not keep the bus busy.
void CudaLoader::fill(std::byte* pinned, const Chunk& chunk) {
  const int64_t units = pack_units(chunk);
  if (chunk.bytes() < kBytesForThreads) return pack(chunk, {0, units}, pinned);
  if (!threads_) threads_.emplace(std::min(kMostLoadingThreads, available_threads()));
  threads_->parallel_for(units, pack_granularity(chunk), [&](Range range) { pack(chunk, range, pinned); });
}

Status CudaLoader::upload(std::byte* to_device, std::span<const std::byte> from_host) {
  while (!from_host.empty()) {
    Chunk chunk;
    chunk.flat = from_host.first(std::min<size_t>(from_host.size(), kSlotBytes));
    ASSIGN_OR_RETURN(Slot * slot, next_slot());
    fill(slot->pinned, chunk);
    RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(to_device, slot->pinned, chunk.flat.size(), cudaMemcpyHostToDevice, stream_),
        kCopying, device_);
    RETURN_IF_CUDA_ERROR(cudaEventRecord(slot->free, stream_), kCopying, device_);
    to_device += chunk.flat.size();
    from_host = from_host.subspan(chunk.flat.size());
  }
  return {};
}

Status CudaLoader::load(std::byte* to, DType dtype, std::span<const StoredPart> parts) {
  for (const StoredPart& part : parts) {
    RETURN_IF_ERROR(
        for_each_chunk(part, dtype, kSlotBytes, [&](const Chunk& chunk) { return send(chunk, to, dtype); }));
  }
  ++loads_;
  return {};
}

Status CudaLoader::land() {
  if (landing_ != nullptr) return {};
  RETURN_IF_CUDA_ERROR(cudaMalloc(&landing_, kLandingBytes), "making room to load through", device_);
  RETURN_IF_CUDA_ERROR(cudaMemsetAsync(landing_ + kPinnedBytes, 0xff, sizeof(kAllFinite), stream_),
                       "clearing memory", device_);
  return {};
}

Status CudaLoader::send(const Chunk& chunk, std::byte* to, DType dtype) {
  const bool unchanged = chunk.part->unchanged;
  if (!unchanged) RETURN_IF_ERROR(land());
  std::byte* const landing = landing_ + turn_ * kSlotBytes;
  ASSIGN_OR_RETURN(Slot * slot, next_slot());
  fill(slot->pinned, chunk);
  RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(unchanged ? to + chunk.to_bytes : landing, slot->pinned,
                                       static_cast<size_t>(chunk.bytes()), cudaMemcpyHostToDevice, copies_),
                       kCopying, device_);
  bytes_ += chunk.bytes();
  if (!unchanged) {
    RETURN_IF_CUDA_ERROR(cudaEventRecord(slot->arrived, copies_), kCopying, device_);
    RETURN_IF_CUDA_ERROR(cudaStreamWaitEvent(stream_, slot->arrived), kCopying, device_);
    launch_unpack(stream_, chunk, landing, to, dtype, loads_,
                  reinterpret_cast<unsigned long long*>(landing_ + kPinnedBytes));
    RETURN_IF_CUDA_ERROR(cudaPeekAtLastError(), "converting weights", device_);
  }
  RETURN_IF_CUDA_ERROR(cudaEventRecord(slot->free, unchanged ? copies_ : stream_), kCopying, device_);
  return {};
}

Result<Loaded> CudaLoader::finish() {
  unsigned long long first = kAllFinite;
  if (landing_ != nullptr) {
    RETURN_IF_CUDA_ERROR(
        cudaMemcpyAsync(&first, landing_ + kPinnedBytes, sizeof(first), cudaMemcpyDeviceToHost, stream_),
        kCopying, device_);
  }
  RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(copies_), kCopying, device_);
  RETURN_IF_CUDA_ERROR(cudaStreamSynchronize(stream_), "converting weights", device_);
  if (landing_ != nullptr) cudaFree(std::exchange(landing_, nullptr));
  loads_ = 0;
  return loaded_report(std::exchange(bytes_, 0), first);
}

}  // namespace tenon::cuda

#endif
