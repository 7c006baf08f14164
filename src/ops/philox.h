// Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): random words as a pure
// function of a counter and a key, so any element can be drawn alone, in any order, again. Shared by the
// reference and the kernels, which must agree bit for bit.
#pragma once

#include <array>
#include <cstdint>

namespace tenon {

constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
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
