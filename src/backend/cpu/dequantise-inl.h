// Blocks of GGUF's quantised types to f32, as ggml's specification of the layouts defines the values:
// integers are unpacked into a small tile, then scaled with one multiplication and one addition (each
// rounded), so that every target gives the same bits. Included once per Highway target.
#if defined(TENON_BACKEND_CPU_DEQUANTISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_DEQUANTISE_INL_H_
#undef TENON_BACKEND_CPU_DEQUANTISE_INL_H_
#else
#define TENON_BACKEND_CPU_DEQUANTISE_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "backend/cpu/simd-inl.h"
#include "base/check.h"
#include "base/dtype.h"
#include "base/half.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

HWY_INLINE float read_f16(const uint8_t* p) {
  uint16_t bits;
  std::memcpy(&bits, p, 2);
  return f16_to_f32(bits);
}

// The f16 number at p in every lane.
HWY_INLINE VF widen_scale(const uint8_t* p) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(DF(), read_f16(p));
#else
  uint16_t bits;
  std::memcpy(&bits, p, 2);
  const hn::Rebind<uint16_t, DF> du16;
  return hn::PromoteTo(DF(), hn::BitCast(hn::Rebind<hwy::float16_t, DF>(), hn::Set(du16, bits)));
#endif
}

// out[i] = scale * q[i] + offset for `count` (a multiple of 16) integers.
HWY_INLINE void scale_integers(const int8_t* q, size_t count, float scale, float offset, float* out) {
  const DF d;
  const hn::Rebind<int8_t, DF> d8;
  const hn::Rebind<int32_t, DF> d32;
  const VF scales = hn::Set(d, scale), offsets = hn::Set(d, offset);
  for (size_t i = 0; i < count; i += kLanes) {
    const VF value = hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, q + i)));
    hn::StoreU(hn::Add(hn::Mul(value, scales), offsets), d, out + i);
  }
}

// 16 bytes hold 32 four-bit values: low halves first.
HWY_INLINE void unpack_nibbles(const uint8_t* packed, int8_t* q) {
  for (int i = 0; i < 16; ++i) {
    q[i] = static_cast<int8_t>(packed[i] & 15);
    q[i + 16] = static_cast<int8_t>(packed[i] >> 4);
  }
}

// out[i] = scale * (four-bit number i + bias) + offset for the 32 of a block.
HWY_INLINE void scale_nibbles(const uint8_t* packed, int32_t bias, VF scale, VF offset, float* out) {
  const DF d;
  const hn::Rebind<uint8_t, DF> d8;
  const hn::Rebind<int32_t, DF> d32;
  const auto mask = hn::Set(d32, 15), biases = hn::Set(d32, bias);
#pragma GCC unroll 2
  for (size_t i = 0; i < 16; i += kLanes) {
    const auto bytes = hn::PromoteTo(d32, hn::LoadU(d8, packed + i));
    const VF low = hn::ConvertTo(d, hn::Add(hn::And(bytes, mask), biases));
    const VF high = hn::ConvertTo(d, hn::Add(hn::ShiftRight<4>(bytes), biases));
    hn::StoreU(hn::Add(hn::Mul(low, scale), offset), d, out + i);
    hn::StoreU(hn::Add(hn::Mul(high, scale), offset), d, out + 16 + i);
  }
}

HWY_INLINE void dequantise_q4_0(const uint8_t* block, float* out) {
  scale_nibbles(block + 2, -8, widen_scale(block), hn::Zero(DF()), out);
}

HWY_INLINE void dequantise_q4_1(const uint8_t* block, float* out) {
  scale_nibbles(block + 4, 0, widen_scale(block), widen_scale(block + 2), out);
}

// The fifth bits are bits 0..31 of a little-endian word.
HWY_INLINE void add_fifth_bits(const uint8_t* word, int8_t* q) {
  uint32_t bits;
  std::memcpy(&bits, word, 4);
  for (int i = 0; i < 32; ++i) q[i] = static_cast<int8_t>(q[i] | (bits >> i & 1) << 4);
}

HWY_INLINE void dequantise_q5_0(const uint8_t* block, float* out) {
  int8_t q[32];
  unpack_nibbles(block + 6, q);
  add_fifth_bits(block + 2, q);
  for (int8_t& value : q) value = static_cast<int8_t>(value - 16);
  scale_integers(q, 32, read_f16(block), 0.0f, out);
}

HWY_INLINE void dequantise_q5_1(const uint8_t* block, float* out) {
  int8_t q[32];
  unpack_nibbles(block + 8, q);
  add_fifth_bits(block + 4, q);
  scale_integers(q, 32, read_f16(block), read_f16(block + 2), out);
}

HWY_INLINE void dequantise_q8_0(const uint8_t* block, float* out) {
  const DF d;
  const hn::Rebind<int8_t, DF> d8;
  const hn::Rebind<int32_t, DF> d32;
  const VF scale = widen_scale(block), zero = hn::Zero(d);
#pragma GCC unroll 4
  for (size_t i = 0; i < 32; i += kLanes) {
    const auto* from = reinterpret_cast<const int8_t*>(block + 2 + i);
    const VF value = hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, from)));
    hn::StoreU(hn::Add(hn::Mul(value, scale), zero), d, out + i);
  }
}

// Block: 16 scale bytes (low half: scale, high half: minimum), 64 bytes of 2-bit values, f16 d, f16 dmin.
HWY_INLINE void dequantise_q2_k(const uint8_t* block, float* out) {
  const float d = read_f16(block + 80), dmin = read_f16(block + 82);
  for (int group = 0; group < 16; ++group) {
    const uint8_t* packed = block + 16 + group / 8 * 32 + group % 2 * 16;
    const int shift = group % 8 / 2 * 2;
    int8_t q[16];
    for (int i = 0; i < 16; ++i) q[i] = static_cast<int8_t>(packed[i] >> shift & 3);
    const uint8_t scale = block[group];
    scale_integers(q, 16, d * static_cast<float>(scale & 15), -(dmin * static_cast<float>(scale >> 4)),
                   out + group * 16);
  }
}

// Block: 32 bytes of third bits, 64 bytes of 2-bit values, 12 bytes of sixteen 6-bit scales, f16 d.
HWY_INLINE void dequantise_q3_k(const uint8_t* block, float* out) {
  const uint8_t* scales = block + 96;
  const float d = read_f16(block + 108);
  for (int group = 0; group < 16; ++group) {
    const int half = group % 2 * 16, bit = group / 2;
    const uint8_t* packed = block + 32 + group / 8 * 32 + half;
    const int shift = group % 8 / 2 * 2;
    int8_t q[16];
    for (int i = 0; i < 16; ++i) {
      const int third = block[half + i] >> bit & 1;
      q[i] = static_cast<int8_t>((packed[i] >> shift & 3) - (third ? 0 : 4));
    }
    const int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
    const int high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
    scale_integers(q, 16, d * static_cast<float>((low | high << 4) - 32), 0.0f, out + group * 16);
  }
}

// Eight 6-bit scales and eight 6-bit minima in 12 bytes (q4_k and q5_k).
struct ScaleAndMinimum {
  float scale, minimum;
};
HWY_INLINE ScaleAndMinimum packed_scale(const uint8_t* s, int index) {
  if (index < 4) return {static_cast<float>(s[index] & 63), static_cast<float>(s[index + 4] & 63)};
  return {static_cast<float>((s[index + 4] & 15) | (s[index - 4] >> 6) << 4),
          static_cast<float>((s[index + 4] >> 4) | (s[index] >> 6) << 4)};
}

// Block: f16 d, f16 dmin, 12 scale bytes, (q5_k: 32 bytes of fifth bits,) 128 bytes of 4-bit values.
template <bool kFifthBits>
HWY_INLINE void dequantise_q45_k(const uint8_t* block, float* out) {
  const float d = read_f16(block), dmin = read_f16(block + 2);
  const uint8_t* fifth = block + 16;
  const uint8_t* packed = block + (kFifthBits ? 48 : 16);
  for (int group = 0; group < 8; ++group) {
    const uint8_t* bytes = packed + group / 2 * 32;
    const int shift = group % 2 * 4;
    int8_t q[32];
    for (int i = 0; i < 32; ++i) q[i] = static_cast<int8_t>(bytes[i] >> shift & 15);
    if (kFifthBits) {
      for (int i = 0; i < 32; ++i) q[i] = static_cast<int8_t>(q[i] | (fifth[i] >> group & 1) << 4);
    }
    const ScaleAndMinimum s = packed_scale(block + 4, group);
    scale_integers(q, 32, d * s.scale, -(dmin * s.minimum), out + group * 32);
  }
}

// Block: 128 bytes of low halves, 64 bytes of high pairs, 16 signed scales, f16 d.
HWY_INLINE void dequantise_q6_k(const uint8_t* block, float* out) {
  const float d = read_f16(block + 208);
  for (int group = 0; group < 16; ++group) {
    const int half = group / 8, quarter = group % 8 / 2, start = group % 2 * 16;
    const uint8_t* low = block + half * 64 + quarter % 2 * 32 + start;
    const uint8_t* high = block + 128 + half * 32 + start;
    int8_t q[16];
    for (int i = 0; i < 16; ++i) {
      const int value = (low[i] >> (quarter / 2 * 4) & 15) | (high[i] >> (quarter * 2) & 3) << 4;
      q[i] = static_cast<int8_t>(value - 32);
    }
    const int8_t scale = static_cast<int8_t>(block[192 + group]);
    scale_integers(q, 16, d * static_cast<float>(scale), 0.0f, out + group * 16);
  }
}

template <void (*kDecode)(const uint8_t*, float*)>
HWY_INLINE void each_block(const uint8_t* blocks, int64_t count, int64_t elements, int64_t bytes,
                           float* out) {
  for (int64_t i = 0; i < count; ++i) kDecode(blocks + i * bytes, out + i * elements);
}

// Whole blocks [begin, begin + count) of elements of a row.
inline void dequantise(DType dtype, const std::byte* row, int64_t begin, int64_t count, float* out) {
  const DTypeInfo& info = dtype_info(dtype);
  const int64_t elements = info.block_elements, bytes = info.block_bytes;
  CHECK(begin % elements == 0 && count % elements == 0, "part of a quantised block");
  const auto* from = reinterpret_cast<const uint8_t*>(row) + begin / elements * bytes;
  const int64_t blocks = count / elements;
  switch (dtype) {
    case DType::q4_0:
      return each_block<dequantise_q4_0>(from, blocks, elements, bytes, out);
    case DType::q4_1:
      return each_block<dequantise_q4_1>(from, blocks, elements, bytes, out);
    case DType::q5_0:
      return each_block<dequantise_q5_0>(from, blocks, elements, bytes, out);
    case DType::q5_1:
      return each_block<dequantise_q5_1>(from, blocks, elements, bytes, out);
    case DType::q8_0:
      return each_block<dequantise_q8_0>(from, blocks, elements, bytes, out);
    case DType::q2_k:
      return each_block<dequantise_q2_k>(from, blocks, elements, bytes, out);
    case DType::q3_k:
      return each_block<dequantise_q3_k>(from, blocks, elements, bytes, out);
    case DType::q4_k:
      return each_block<dequantise_q45_k<false>>(from, blocks, elements, bytes, out);
    case DType::q5_k:
      return each_block<dequantise_q45_k<true>>(from, blocks, elements, bytes, out);
    case DType::q6_k:
      return each_block<dequantise_q6_k>(from, blocks, elements, bytes, out);
    default:
      CHECK(false, "not a block dtype");
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
