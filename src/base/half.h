// bf16 and f16 as storage: 16-bit patterns with exact widening and round-to-nearest-even narrowing.
// Arithmetic is in float or wider. Kernels have vector versions; these are the definition they must match.
#pragma once

#include <bit>
#include <cstdint>

namespace tenon {

inline float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>((bits >> 16) | 0x40);  // keep NaN a quiet NaN
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);

}  // namespace tenon
