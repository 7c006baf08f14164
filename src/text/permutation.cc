#include "text/permutation.h"

#include <bit>

#include "base/check.h"

namespace tenon {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;
constexpr uint64_t kSplitSalt = 0x73706c69742d6576ull;  // keeps the split independent of every epoch's order

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

}  // namespace

Permutation::Permutation(uint64_t seed, uint64_t epoch, int64_t count) : count_(count) {
  CHECK(count >= 0 && count <= (int64_t{1} << 62));
  const int bits = count > 1 ? std::bit_width(static_cast<uint64_t>(count - 1)) : 1;
  half_bits_ = (bits + 1) / 2;
  const uint64_t base = mix(mix(seed + kGolden) + epoch + kGolden);
  for (int r = 0; r < kRounds; ++r) keys_[r] = mix(base + static_cast<uint64_t>(r + 1) * kGolden);
}

int64_t Permutation::operator()(int64_t index) const {
  CHECK(index >= 0 && index < count_);
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t value = static_cast<uint64_t>(index);
  do {
    uint64_t left = value >> half_bits_;
    uint64_t right = value & mask;
    for (const uint64_t key : keys_) {
      const uint64_t next = left ^ (mix(right + key) >> (64 - half_bits_));
      left = right;
      right = next;
    }
    value = (left << half_bits_) | right;
  } while (value >= static_cast<uint64_t>(count_));
  return static_cast<int64_t>(value);
}

bool in_eval_split(uint64_t seed, int64_t row, double fraction) {
  const uint64_t hash = mix(mix(seed ^ kSplitSalt) + static_cast<uint64_t>(row) * kGolden);
  return static_cast<double>(hash >> 11) * 0x1p-53 < fraction;
}

}  // namespace tenon
