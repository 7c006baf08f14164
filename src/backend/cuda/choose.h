// The n largest of a row of scores by a warp, which finds the n-th largest bit by bit.
#pragma once

#include "backend/cuda/lane_bits.h"
#include "backend/cuda/launch.h"

namespace tenon::cuda {

// Bits whose order as integers is that of the numbers.
__device__ inline uint32_t ordered_bits(float value) {
  const uint32_t bits = as_bits(value);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

// A row's scores, as its warp goes over them.
struct WarpScores {
  const float* scores;
  int64_t count;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ uint32_t at(int64_t i) const { return ordered_bits(scores[i]); }
  __device__ int64_t at_least(uint32_t bound) const {
    int found = 0;
    for (int64_t i = lane(); i < count; i += kWarp) found += at(i) >= bound ? 1 : 0;
    return warp_sum(found);
  }
  // The n-th largest; 0 where there are not more than n.
  __device__ uint32_t nth_largest(int64_t n) const {
    uint32_t bound = 0;
    for (int bit = 31; count > n && bit >= 0; --bit) {
      const uint32_t higher = bound | 1u << bit;
      if (at_least(higher) >= n) bound = higher;
    }
    return bound;
  }
};

// Calls take(rank, index) once, in one lane, for each of the n largest, ranks in the order of the indices;
// among equal ones the lowest are taken. Returns how many were taken: n, or all.
template <typename Take>
__device__ inline int64_t choose_largest(const WarpScores& scores, int64_t n, Take take) {
  const uint32_t bound = scores.nth_largest(n);
  const int64_t above = bound == 0 ? 0 : scores.at_least(bound + 1);
  const int64_t ties = n - above;
  const int lane = WarpScores::lane();
  const uint32_t before_me = (1u << lane) - 1;
  int64_t taken_count = 0, equal_seen = 0;
  for (int64_t first = 0; first < scores.count; first += kWarp) {
    const int64_t i = first + lane;
    const uint32_t bits = i < scores.count ? scores.at(i) : 0;
    const bool equal = i < scores.count && (bound == 0 || bits == bound);
    const uint32_t equals = lanes_where(equal);
    const bool tie_taken = equal && equal_seen + count_bits(equals & before_me) < ties;
    const bool taken = tie_taken || (i < scores.count && bound != 0 && bits > bound);
    const uint32_t takers = lanes_where(taken);
    if (taken) take(taken_count + count_bits(takers & before_me), i);
    taken_count += count_bits(takers);
    equal_seen += count_bits(equals);
  }
  return taken_count;
}

}  // namespace tenon::cuda
