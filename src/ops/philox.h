// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): random words as a pure
// function of a counter and a key, so any element can be drawn alone, in any order, again. Shared by the
// reference and the kernels, which must agree bit for bit.
#pragma once

#include <array>
#include <cstdint>

namespace tenon {

inline constexpr int kPhiloxRounds = 10;

constexpr void philox_round(uint32_t& c0, uint32_t& c1, uint32_t& c2, uint32_t& c3,
                            std::array<uint32_t, 2> key) {
  const uint64_t product0 = uint64_t{0xD2511F53} * c0, product1 = uint64_t{0xCD9E8D57} * c2;
  c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key[0];
  c1 = static_cast<uint32_t>(product1);
  c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key[1];
  c3 = static_cast<uint32_t>(product0);
}

constexpr std::array<uint32_t, 2> next_philox_key(std::array<uint32_t, 2> key) {
  return {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
}

constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round, key = next_philox_key(key))
    philox_round(counter[0], counter[1], counter[2], counter[3], key);
  return counter;
}

// The four words of elements 4 * block .. 4 * block + 3 of a stream.
constexpr std::array<uint32_t, 4> philox_block(std::array<uint32_t, 2> seed, uint64_t stream,
                                               uint64_t block) {
  return philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                     static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)},
                    seed);
}

// An element is dropped where its word is below this: round(rate * 2^32), for a rate in [0, 1).
constexpr uint64_t dropout_threshold(double rate) {
  return static_cast<uint64_t>(rate * 4294967296.0 + 0.5);
}

}  // namespace tenon
