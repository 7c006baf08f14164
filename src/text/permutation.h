// Row orders and row splits as pure functions of a seed: nothing is stored but a few keys, so a resumed run
// needs only a counter, and four million rows cost no memory. Never reads rows. Not for cryptography.
#pragma once

#include <array>
#include <cstdint>

namespace tenon {

// A bijection of [0, count), fixed by (seed, epoch, count).
//
// A balanced Feistel network (Luby and Rackoff, 1988) on 2 * h bits, 2 * h the smallest even number of bits
// that holds count - 1 (h >= 1), walked until the value is below count (Black and Rogaway, 2002: cycle
// walking; fewer than four turns on average). With mix() the finaliser of splitmix64 (Steele, Lea and Flood,
// 2014) and all sums modulo 2^64:
//   base   = mix(mix(seed + G) + epoch + G)                   G = 0x9e3779b97f4a7c15
//   key[r] = mix(base + (r + 1) * G)                          r = 0..kRounds-1
//   round:   (left, right) <- (right, left ^ (mix(right + key[r]) >> (64 - h)))
class Permutation {
 public:
  static constexpr int kRounds = 6;

  // 0 <= count <= 2^62.
  Permutation(uint64_t seed, uint64_t epoch, int64_t count);

  int64_t count() const { return count_; }

  // Where index goes; 0 <= index < count().
  int64_t operator()(int64_t index) const;

 private:
  std::array<uint64_t, kRounds> keys_{};
  int64_t count_ = 0;
  int half_bits_ = 1;
};

// Whether `row` belongs to the evaluation part: its hash with the seed, as a number in [0, 1), is below
// `fraction`. The answer for a row does not depend on how many rows there are.
bool in_eval_split(uint64_t seed, int64_t row, double fraction);

}  // namespace tenon
