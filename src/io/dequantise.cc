#include "io/dequantise.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/half.h"

namespace tenon {
namespace {

// ggml-common.h states the block layouts; the comments below give the order of the fields.
constexpr int kBlock = 32;

uint8_t at(const std::byte* src, int i) {
  return static_cast<uint8_t>(src[i]);
}

uint16_t load_u16(const std::byte* src) {
  uint16_t bits;
  std::memcpy(&bits, src, sizeof(bits));
  return bits;
}

uint32_t load_u32(const std::byte* src) {
  uint32_t bits;
  std::memcpy(&bits, src, sizeof(bits));
  return bits;
}

float load_f16(const std::byte* src) {
  return f16_to_f32(load_u16(src));
}

// f16_to_f32() of base/half.h without branches, so that rows vectorise.
float widen_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  const uint32_t special =
      magnitude >= 0x7c00u ? 0x70000000u : 0x38000000u;  // rebias; infinity and NaN stay so
  const uint32_t normal = (magnitude << 13) + special;
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  return std::bit_cast<float>(sign | (magnitude < 0x400u ? subnormal : normal));
}

void row_f64(const std::byte* src, float* dst, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) {
    double value;
    std::memcpy(&value, src + i * 8, sizeof(value));
    dst[i] = static_cast<float>(value);
  }
}

void row_f16(const std::byte* src, float* dst, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) dst[i] = widen_f16(load_u16(src + i * 2));
}

void row_bf16(const std::byte* src, float* dst, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) dst[i] = bf16_to_f32(load_u16(src + i * 2));
}

// q4_0: d f16, 16 bytes; value i in the low nibble of byte i, value i + 16 in the high one.
void block_q4_0(const std::byte* src, float* dst) {
  const float d = load_f16(src);
  for (int i = 0; i < 16; ++i) {
    const int pair = at(src + 2, i);
    dst[i] = d * static_cast<float>((pair & 15) - 8);
    dst[i + 16] = d * static_cast<float>((pair >> 4) - 8);
  }
}

// q4_1: d f16, m f16, 16 bytes as q4_0.
void block_q4_1(const std::byte* src, float* dst) {
  const float d = load_f16(src);
  const float m = load_f16(src + 2);
  for (int i = 0; i < 16; ++i) {
    const int pair = at(src + 4, i);
    dst[i] = d * static_cast<float>(pair & 15) + m;
    dst[i + 16] = d * static_cast<float>(pair >> 4) + m;
  }
}

// q5_0: d f16, u32 with the fifth bit of value i at bit i, 16 bytes as q4_0.
void block_q5_0(const std::byte* src, float* dst) {
  const float d = load_f16(src);
  const uint32_t high = load_u32(src + 2);
  for (int i = 0; i < 16; ++i) {
    const int pair = at(src + 6, i);
    dst[i] = d * static_cast<float>(((pair & 15) | static_cast<int>(high >> i & 1) << 4) - 16);
    dst[i + 16] = d * static_cast<float>(((pair >> 4) | static_cast<int>(high >> (i + 16) & 1) << 4) - 16);
  }
}

// q5_1: d f16, m f16, then as q5_0.
void block_q5_1(const std::byte* src, float* dst) {
  const float d = load_f16(src);
  const float m = load_f16(src + 2);
  const uint32_t high = load_u32(src + 4);
  for (int i = 0; i < 16; ++i) {
    const int pair = at(src + 8, i);
    dst[i] = d * static_cast<float>((pair & 15) | static_cast<int>(high >> i & 1) << 4) + m;
    dst[i + 16] = d * static_cast<float>((pair >> 4) | static_cast<int>(high >> (i + 16) & 1) << 4) + m;
  }
}

// q8_0: d f16, 32 signed bytes.
void block_q8_0(const std::byte* src, float* dst) {
  const float d = load_f16(src);
  for (int i = 0; i < kBlock; ++i) dst[i] = d * static_cast<float>(static_cast<int8_t>(src[2 + i]));
}

// q2_k: 16 scales (low nibble scale, high nibble minimum), 64 bytes of 2-bit values, d f16, dmin f16. Each
// half of 128 values uses 32 bytes; values 32 j + i of the half are bits 2 j, 2 j + 1 of byte i.
void block_q2_k(const std::byte* src, float* dst) {
  const float d = load_f16(src + 80);
  const float dmin = load_f16(src + 82);
  for (int group = 0; group < 16; ++group) {
    const int scale = at(src, group);
    const float dl = d * static_cast<float>(scale & 15);
    const float ml = dmin * static_cast<float>(scale >> 4);
    const std::byte* bits = src + 16 + group / 8 * 32 + group % 2 * 16;
    const int shift = group % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i) dst[group * 16 + i] = dl * static_cast<float>(at(bits, i) >> shift & 3) - ml;
  }
}

// q3_k: 32 bytes of high bits (bit b of byte i belongs to value 32 b + i), 64 bytes of low bits as q2_k, 12
// bytes of sixteen 6-bit scales (low nibbles in bytes 0..7, high bits in bytes 8..11), d f16. A clear high
// bit is -4.
void block_q3_k(const std::byte* src, float* dst) {
  const float d = load_f16(src + 108);
  const std::byte* scales = src + 96;
  for (int group = 0; group < 16; ++group) {
    const int low = group < 8 ? at(scales, group) & 15 : at(scales, group - 8) >> 4;
    const int high = at(scales, 8 + group % 4) >> (group / 4 * 2) & 3;
    const float dl = d * static_cast<float>((low | high << 4) - 32);
    const std::byte* bits = src + 32 + group / 8 * 32 + group % 2 * 16;
    const std::byte* mask = src + group % 2 * 16;
    const int shift = group % 8 / 2 * 2;
    const int mask_shift = group / 2;
    for (int i = 0; i < 16; ++i) {
      const int value = (at(bits, i) >> shift & 3) | (at(mask, i) >> mask_shift & 1) << 2;
      dst[group * 16 + i] = dl * static_cast<float>(value - 4);
    }
  }
}

// Eight 6-bit scales and minima in 12 bytes, as q4_k and q5_k pack them.
struct ScaleMin {
  int scale;
  int min;
};
ScaleMin scale_min(const std::byte* packed, int group) {
  if (group < 4) return {at(packed, group) & 63, at(packed, group + 4) & 63};
  return {(at(packed, group + 4) & 15) | at(packed, group - 4) >> 6 << 4,
          at(packed, group + 4) >> 4 | at(packed, group) >> 6 << 4};
}

// q4_k: d f16, dmin f16, 12 bytes of scales, 128 bytes; 32 bytes hold 64 values, low nibbles first.
void block_q4_k(const std::byte* src, float* dst) {
  const float d = load_f16(src);
  const float dmin = load_f16(src + 2);
  for (int group = 0; group < 8; ++group) {
    const auto [scale, min] = scale_min(src + 4, group);
    const float dl = d * static_cast<float>(scale);
    const float ml = dmin * static_cast<float>(min);
    const std::byte* bits = src + 16 + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i)
      dst[group * 32 + i] = dl * static_cast<float>(at(bits, i) >> shift & 15) - ml;
  }
}

// q5_k: d f16, dmin f16, 12 bytes of scales, 32 bytes of high bits (bit g of byte i: value 32 g + i), 128
// bytes as q4_k.
void block_q5_k(const std::byte* src, float* dst) {
  const float d = load_f16(src);
  const float dmin = load_f16(src + 2);
  const std::byte* high = src + 16;
  for (int group = 0; group < 8; ++group) {
    const auto [scale, min] = scale_min(src + 4, group);
    const float dl = d * static_cast<float>(scale);
    const float ml = dmin * static_cast<float>(min);
    const std::byte* bits = src + 48 + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      const int value = (at(bits, i) >> shift & 15) | (at(high, i) >> group & 1) << 4;
      dst[group * 32 + i] = dl * static_cast<float>(value) - ml;
    }
  }
}

// q6_k: 128 bytes of low nibbles, 64 of high bit pairs, 16 signed scales, d f16. In each half of 128 values,
// quarter k (32 values) takes nibble k / 2 of bytes 32 (k % 2) + i and bit pair k of byte i.
void block_q6_k(const std::byte* src, float* dst) {
  const float d = load_f16(src + 208);
  for (int group = 0; group < 16; ++group) {
    const int half = group / 8;
    const int quarter = group % 8 / 2;
    const int begin = group % 2 * 16;
    const std::byte* low = src + half * 64 + quarter % 2 * 32 + begin;
    const std::byte* high = src + 128 + half * 32 + begin;
    const float dl = d * static_cast<float>(static_cast<int8_t>(src[192 + group]));
    const int low_shift = quarter / 2 * 4;
    const int high_shift = quarter * 2;
    for (int i = 0; i < 16; ++i) {
      const int value = (at(low, i) >> low_shift & 15) | (at(high, i) >> high_shift & 3) << 4;
      dst[group * 16 + i] = dl * static_cast<float>(value - 32);
    }
  }
}

template <typename Integer>
void row_of(const std::byte* src, float* dst, int64_t elements) {
  for (int64_t i = 0; i < elements; ++i) {
    Integer value;
    std::memcpy(&value, src + i * static_cast<int64_t>(sizeof(Integer)), sizeof(Integer));
    dst[i] = static_cast<float>(value);
  }
}

template <typename Block>
void each_block(DType dtype, const std::byte* src, float* dst, int64_t elements, Block block) {
  const DTypeInfo& info = dtype_info(dtype);
  const int64_t blocks = elements / info.block_elements;
  for (int64_t i = 0; i < blocks; ++i) block(src + i * info.block_bytes, dst + i * info.block_elements);
}

}  // namespace

bool can_dequantise(DType dtype) {
  return dtype_info(dtype).is_float || is_block_quantised(dtype);
}

void dequantise_row(DType dtype, const std::byte* src, float* dst, int64_t elements) {
  CHECK(elements >= 0 && elements % dtype_info(dtype).block_elements == 0, dtype_name(dtype));
  switch (dtype) {
    case DType::f64:
      return row_f64(src, dst, elements);
    case DType::f32:
      if (elements > 0) std::memcpy(dst, src, static_cast<size_t>(elements) * sizeof(float));
      return;
    case DType::f16:
      return row_f16(src, dst, elements);
    case DType::bf16:
      return row_bf16(src, dst, elements);
    case DType::q4_0:
      return each_block(dtype, src, dst, elements, block_q4_0);
    case DType::q4_1:
      return each_block(dtype, src, dst, elements, block_q4_1);
    case DType::q5_0:
      return each_block(dtype, src, dst, elements, block_q5_0);
    case DType::q5_1:
      return each_block(dtype, src, dst, elements, block_q5_1);
    case DType::q8_0:
      return each_block(dtype, src, dst, elements, block_q8_0);
    case DType::q2_k:
      return each_block(dtype, src, dst, elements, block_q2_k);
    case DType::q3_k:
      return each_block(dtype, src, dst, elements, block_q3_k);
    case DType::q4_k:
      return each_block(dtype, src, dst, elements, block_q4_k);
    case DType::q5_k:
      return each_block(dtype, src, dst, elements, block_q5_k);
    case DType::q6_k:
      return each_block(dtype, src, dst, elements, block_q6_k);
    case DType::i64:
      return row_of<int64_t>(src, dst, elements);
    case DType::i32:
      return row_of<int32_t>(src, dst, elements);
    case DType::i8:
    case DType::u8:
      break;
  }
  CHECK(false, "bytes are not dequantised");
}

}  // namespace tenon
