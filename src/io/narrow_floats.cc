#include "io/narrow_floats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace tenon {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A sign, `exponent_bits`, and the mantissa below, without infinities or NaN.
float plain_float(uint8_t bits, int exponent_bits, int bias) {
  const int mantissa_bits = 7 - exponent_bits;
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int whole = exponent > 0 ? mantissa + (1 << mantissa_bits) : mantissa;
  const float value = std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - bias - mantissa_bits);
  return bits & 0x80 ? -value : value;
}

// E2M1.
constexpr std::array<float, 16> kFourBits = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                             -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

using Table = std::array<float, 256>;

Table table_of(float (*decode)(uint8_t)) {
  Table table;
  for (size_t i = 0; i < table.size(); ++i) table[i] = decode(static_cast<uint8_t>(i));
  return table;
}

}  // namespace

float f8_e4m3_to_f32(uint8_t bits) {
  return (bits & 0x7f) == 0x7f ? kNan : plain_float(bits, 4, 7);
}

float f8_e5m2_to_f32(uint8_t bits) {
  const int magnitude = bits & 0x7f;
  if (magnitude > 0x7c) return kNan;
  if (magnitude == 0x7c) return bits & 0x80 ? -INFINITY : INFINITY;
  return plain_float(bits, 5, 15);
}

float f8_e8m0_to_f32(uint8_t bits) {
  return bits == 0xff ? kNan : std::ldexp(1.0f, static_cast<int>(bits) - 127);
}

void decode_row(ByteCode code, const std::byte* src, float* dst, int64_t elements) {
  static const Table kE4m3 = table_of(f8_e4m3_to_f32), kE5m2 = table_of(f8_e5m2_to_f32),
                     kE8m0 = table_of(f8_e8m0_to_f32);
  CHECK(code != ByteCode::none);
  const Table& table = code == ByteCode::f8_e4m3 ? kE4m3 : code == ByteCode::f8_e5m2 ? kE5m2 : kE8m0;
  for (int64_t i = 0; i < elements; ++i) dst[i] = table[static_cast<size_t>(src[i])];
}

void decode_mxfp4_row(const std::byte* src, const std::byte* scales, float* dst, int64_t elements) {
  CHECK(elements % 32 == 0);
  for (int64_t block = 0; block < elements / 32; ++block) {
    const float scale = f8_e8m0_to_f32(static_cast<uint8_t>(scales[block]));
    for (int64_t i = 0; i < 16; ++i) {
      const auto pair = static_cast<uint8_t>(src[block * 16 + i]);
      dst[block * 32 + 2 * i] = scale * kFourBits[pair & 15];
      dst[block * 32 + 2 * i + 1] = scale * kFourBits[pair >> 4];
    }
  }
}

}  // namespace tenon
