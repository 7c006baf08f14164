// One element of a tensor in any dtype, block-quantised ones included, as ggml's specification of the layouts
// defines it (the same values as backend/cpu: one multiplication and one addition, each rounded).
#pragma once

#include "backend/cuda/tensor.h"

namespace tenon::cuda {

__device__ inline float f16_at(const uint8_t* p) {
  return f16_value(static_cast<uint16_t>(p[0] | p[1] << 8));
}

// value * scale + offset without contraction: each operation is rounded, as on every other device.
__device__ inline float scaled(int value, float scale, float offset) {
#ifdef TENON_CUDA_EMULATED
  return static_cast<float>(value) * scale + offset;
#else
  return __fadd_rn(__fmul_rn(static_cast<float>(value), scale), offset);
#endif
}

// Low halves of 16 bytes first, then the high ones.
__device__ inline int nibble_of_32(const uint8_t* packed, int i) {
  return i < 16 ? packed[i] & 15 : packed[i - 16] >> 4;
}

__device__ inline float q2_k_at(const uint8_t* block, int i) {
  const int group = i / 16;
  const int value = block[16 + group / 8 * 32 + group % 2 * 16 + i % 16] >> (group % 8 / 2 * 2) & 3;
  const float d = f16_at(block + 80), dmin = f16_at(block + 82);
  return scaled(value, d * static_cast<float>(block[group] & 15),
                -(dmin * static_cast<float>(block[group] >> 4)));
}

__device__ inline float q3_k_at(const uint8_t* block, int i) {
  const int group = i / 16, half = group % 2 * 16;
  const uint8_t* scales = block + 96;
  const int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
  const int high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
  const int third = block[half + i % 16] >> (group / 2) & 1;
  const int value = (block[32 + group / 8 * 32 + half + i % 16] >> (group % 8 / 2 * 2) & 3) - (third ? 0 : 4);
  return scaled(value, f16_at(block + 108) * static_cast<float>((low | high << 4) - 32), 0.0f);
}

// q4_k and q5_k: f16 d, f16 dmin, 12 bytes of 6-bit scales and minima, (q5_k: 32 bytes of fifth bits,) 128
// bytes.
__device__ inline float q45_k_at(const uint8_t* block, int i, bool fifth_bits) {
  const int group = i / 32, at = i % 32;
  const uint8_t* s = block + 4;
  const uint8_t* packed = block + (fifth_bits ? 48 : 16);
  int value = packed[group / 2 * 32 + at] >> (group % 2 * 4) & 15;
  if (fifth_bits) value |= (block[16 + at] >> group & 1) << 4;
  const int scale = group < 4 ? s[group] & 63 : (s[group + 4] & 15) | (s[group - 4] >> 6) << 4;
  const int minimum = group < 4 ? s[group + 4] & 63 : (s[group + 4] >> 4) | (s[group] >> 6) << 4;
  return scaled(value, f16_at(block) * static_cast<float>(scale),
                -(f16_at(block + 2) * static_cast<float>(minimum)));
}

__device__ inline float q6_k_at(const uint8_t* block, int i) {
  const int group = i / 16, half = group / 8, quarter = group % 8 / 2, at = group % 2 * 16 + i % 16;
  const int low = block[half * 64 + quarter % 2 * 32 + at] >> (quarter / 2 * 4) & 15;
  const int high = block[128 + half * 32 + at] >> (quarter * 2) & 3;
  const auto scale = static_cast<int8_t>(block[192 + group]);
  return scaled((low | high << 4) - 32, f16_at(block + 208) * static_cast<float>(scale), 0.0f);
}

__device__ inline float quantised_at(DType dtype, const uint8_t* data, int64_t index) {
  const int i = static_cast<int>(index % 32), k = static_cast<int>(index % 256);
  const int64_t small = index / 32, large = index / 256;
  switch (dtype) {
    case DType::q4_0: {
      const uint8_t* block = data + small * 18;
      return scaled(nibble_of_32(block + 2, i) - 8, f16_at(block), 0.0f);
    }
    case DType::q4_1: {
      const uint8_t* block = data + small * 20;
      return scaled(nibble_of_32(block + 4, i), f16_at(block), f16_at(block + 2));
    }
    case DType::q5_0: {
      const uint8_t* block = data + small * 22;
      const int fifth = block[2 + i / 8] >> (i % 8) & 1;
      return scaled((nibble_of_32(block + 6, i) | fifth << 4) - 16, f16_at(block), 0.0f);
    }
    case DType::q5_1: {
      const uint8_t* block = data + small * 24;
      const int fifth = block[4 + i / 8] >> (i % 8) & 1;
      return scaled(nibble_of_32(block + 8, i) | fifth << 4, f16_at(block), f16_at(block + 2));
    }
    case DType::q8_0: {
      const uint8_t* block = data + small * 34;
      return scaled(static_cast<int8_t>(block[2 + i]), f16_at(block), 0.0f);
    }
    case DType::q2_k:
      return q2_k_at(data + large * 84, k);
    case DType::q3_k:
      return q3_k_at(data + large * 110, k);
    case DType::q4_k:
      return q45_k_at(data + large * 144, k, false);
    case DType::q5_k:
      return q45_k_at(data + large * 176, k, true);
    default:
      return q6_k_at(data + large * 210, k);
  }
}

// Any dtype.
__device__ inline float load_number(const Tensor& t, int64_t i) {
  if (t.dtype == DType::f32 || t.dtype == DType::bf16 || t.dtype == DType::f16) return load(t, i);
  return quantised_at(t.dtype, reinterpret_cast<const uint8_t*>(t.data), i);
}

}  // namespace tenon::cuda
