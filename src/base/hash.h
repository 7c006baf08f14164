// FNV-1a, 64 bits (RFC draft-eastlake-fnv): names programs, plans and recipes. Not for hostile input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

inline constexpr uint64_t kHashSeed = 0xcbf29ce484222325ull;

inline uint64_t hash_bytes(std::string_view bytes, uint64_t hash = kHashSeed) {
  for (unsigned char c : bytes) hash = (hash ^ c) * 0x100000001b3ull;
  return hash;
}

// Sixteen lower-case hexadecimal digits.
std::string hash_text(uint64_t hash);

}  // namespace tenon
