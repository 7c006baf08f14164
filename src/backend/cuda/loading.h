// Loading of stored tensors: rows are packed on the host, chunk by chunk, into a buffer that travels to the
// device, where kernels turn them into a weight's values (loading_kernels.cu). Host code without CUDA, shared
// by the device and its emulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "base/function_ref.h"
#include "base/stored_part.h"
#include "base/threads.h"
#include "device/device.h"

namespace tenon::cuda {

// Packed rows start at multiples of this.
inline constexpr int64_t kPackedRowAlignment = 16;

// How a row of values lies packed: whole blocks of the stored row, then the scales that serve them.
struct PackedLayout {
  int64_t from_bytes = 0, bytes = 0;  // in the stored row
  int64_t scales_at = 0, scales_from_bytes = 0, scales_bytes = 0;
  int64_t pitch = 0;        // from one packed row to the next
  int64_t skip = 0;         // stored values before the first that is wanted
  int64_t scales_skip = 0;  // values of the first scale that are before the packed ones
};

// Rows [first_row, first_row + rows) of a part and of each some columns. Where the part is unchanged, `flat`
// is what is copied to byte `to_bytes` of the weight as it is, in place of rows where these are not packed.
struct Chunk {
  const StoredPart* part = nullptr;
  int64_t first_row = 0, rows = 0;
  int64_t first_column = 0, columns = 0;
  PackedLayout layout;
  std::span<const std::byte> flat;
  int64_t to_bytes = 0;

  int64_t bytes() const { return flat.empty() ? rows * layout.pitch : static_cast<int64_t>(flat.size()); }
};

// Calls `visit` with the chunks that cover a part, none larger than `capacity_bytes`, which is at least
// kLeastChunkBytes, until one fails. `dtype` is the weight's.
inline constexpr int64_t kLeastChunkBytes = 16 << 10;
Status for_each_chunk(const StoredPart& part, DType dtype, int64_t capacity_bytes,
                      FunctionRef<Status(const Chunk&)> visit);

// Packs a share of a chunk: rows `range` of its rows, or bytes of what is flat.
void pack(const Chunk& chunk, Range range, std::byte* packed);
// What pack() takes shares of, and what shares are multiples of.
inline int64_t pack_units(const Chunk& chunk) {
  return chunk.flat.empty() ? chunk.rows : static_cast<int64_t>(chunk.flat.size());
}
inline int64_t pack_granularity(const Chunk& chunk) {
  return chunk.flat.empty() ? 1 : 4096;
}

// Where a value that is not finite was seen first: the load's number above kElementBits, the element below.
inline constexpr int kElementBits = 40;
inline constexpr unsigned long long kAllFinite = ~0ull;

Loaded loaded_report(int64_t bytes, unsigned long long not_finite);

// Starts the kernel that makes elements of the weight at `to`, of `dtype`, of a packed chunk (not flat, its
// part not unchanged) in memory that the kernel reads. The least of what it notes goes to `not_finite`.
void launch_unpack(void* stream, const Chunk& chunk, const std::byte* packed, std::byte* to, DType dtype,
                   int64_t load, unsigned long long* not_finite);

}  // namespace tenon::cuda
