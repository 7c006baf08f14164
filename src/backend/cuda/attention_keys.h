// Where the keys of a query lie, packed or in pages, and the running softmax of a warp over them.
#pragma once

#include "backend/cuda/attention.h"

namespace tenon::cuda {

// Where the keys of one query lie.
struct PackedKeys {
  const int32_t* sequence_begin;
  static constexpr bool kShared = false;  // whether several warps share a query's keys
  __device__ bool has(int64_t) const { return true; }
  __device__ int64_t position(int64_t t) const { return t - sequence_begin[t]; }
  __device__ int64_t row(int64_t t, int64_t j) const { return sequence_begin[t] + j; }
};

struct PagedKeys {
  const int32_t *page_table, *stream, *positions;
  int64_t max_pages, page_tokens, pages;
  static constexpr bool kShared = true;
  __device__ bool has(int64_t t) const { return stream[t] >= 0; }
  __device__ int64_t position(int64_t t) const { return positions[t]; }
  // In 32 bits, which positions are: a division of 64 takes as long as the rest of a key.
  __device__ int64_t row(int64_t t, int64_t j) const {
    const auto at = static_cast<uint32_t>(j), size = static_cast<uint32_t>(page_tokens);
    const uint32_t turn = at / size;
    if (turn >= max_pages) stop();
    const int64_t page = page_table[stream[t] * max_pages + turn];
    if (page < 0 || page >= pages) stop();
    return page * page_tokens + (at - turn * size);
  }
};

// Of a call whose input 1 is a cache [pages, page_tokens, ...]: the page table and each token's stream are
// inputs `table` and `table` + 1, each token's position is the next, where the call has them.
inline PagedKeys paged_keys(const KernelCall& call, size_t table, bool has_positions = true) {
  const Shape& cache = call.inputs[1].type.shape;
  return {.page_table = input_as<int32_t>(call, table),
          .stream = input_as<int32_t>(call, table + 1),
          .positions = has_positions ? input_as<int32_t>(call, table + 2) : nullptr,
          .max_pages = call.inputs[table].type.shape[1],
          .page_tokens = cache[1],
          .pages = cache[0]};
}

// Keys to choose from: ids are rows of the pack, or positions of a stream.
struct PackedChoices : PackedKeys {
  __device__ int64_t first_id(int64_t t) const { return sequence_begin[t]; }
};
struct PagedChoices : PagedKeys {
  __device__ int64_t first_id(int64_t) const { return 0; }
};

// Warps that share a query's keys: few tokens are decoded together, and a key after the other is slow. Rows
// with more elements a lane leave room for fewer.
template <int kPer, typename Keys>
constexpr int kWarpsOfQuery = !Keys::kShared ? 1
                              : kPer == 4    ? 32
                              : kPer == 8    ? 16
                                             : 8;

// A softmax-weighted sum of values, and what it takes to go on or to join another.
template <int kPer>
struct RunningSum {
  float largest = -INFINITY, total = 0;
  WarpRow<kPer> sum = WarpRow<kPer>::zero();

  __device__ void add(float score, const WarpRow<kPer>& value) {
    const float next = fmaxf(largest, score), kept = expf(largest - next), weight = expf(score - next);
    total = total * kept + weight;
    sum.multiply(kept);
    sum.add(weight, value);
    largest = next;
  }
};

}  // namespace tenon::cuda
