// Bits of words: one a lane of a warp, or sets that several threads add to.
#pragma once

#include "backend/cuda/language.h"

namespace tenon::cuda {

#ifdef TENON_CUDA_EMULATED

inline uint32_t lanes_where(bool predicate) {
  const int mine = predicate ? 1 : 0;
  const std::byte* table = emulator::exchange(&mine, sizeof(mine));
  uint32_t lanes = 0;
  for (int lane = 0; lane < kWarp; ++lane) {
    int theirs = 0;
    std::memcpy(&theirs, table + 64 * lane, sizeof(theirs));
    if (theirs != 0) lanes |= 1u << lane;
  }
  return lanes;
}
inline int lowest_bit(uint32_t bits) {
  return __builtin_ctz(bits);
}
inline int count_bits(uint32_t bits) {
  return __builtin_popcount(bits);
}
inline void or_bits(uint32_t* to, uint32_t bits) {
  *to |= bits;
}

#else

// Bit L: whether the predicate holds in lane L. Every lane of the warp asks.
__device__ inline uint32_t lanes_where(bool predicate) {
  return __ballot_sync(kWholeWarp, predicate);
}
__device__ inline int lowest_bit(uint32_t bits) {
  return __ffs(static_cast<int>(bits)) - 1;
}
__device__ inline int count_bits(uint32_t bits) {
  return __popc(bits);
}
// *to |= bits, whatever other threads add to the same word.
__device__ inline void or_bits(uint32_t* to, uint32_t bits) {
  atomicOr(to, bits);
}

#endif

}  // namespace tenon::cuda
