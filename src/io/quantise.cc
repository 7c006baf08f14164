#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "io/dequantise.h"

namespace tenon {
namespace {

constexpr int kBlock = 32;

void store_f16(float value, std::byte* dst) {
  const uint16_t bits = f32_to_f16(value);
  std::memcpy(dst, &bits, sizeof(bits));
}

float inverse(float scale) {
  return scale == 0.0f ? 0.0f : 1.0f / scale;
}

// Truncates to an integer of [low, high]; NaN becomes low.
int clamped(float value, int low, int high) {
  if (!(value > static_cast<float>(low))) return low;
  if (value >= static_cast<float>(high)) return high;
  return static_cast<int>(value);
}

// To the nearest integer, halves away from zero, of at most 127 in magnitude. std::round() would be a library
// call.
int rounded(float value) {
  const float magnitude = std::fabs(value);
  const float bounded = magnitude < 127.0f ? magnitude : 127.0f;
  const int whole = static_cast<int>(bounded);
  const int up = bounded - static_cast<float>(whole) >= 0.5f ? 1 : 0;
  return static_cast<int>(std::copysign(1.0f, value)) * (whole + up);
}

// The largest magnitude scales to 127.
void block_q8_0(const float* src, std::byte* dst) {
  float largest = 0.0f;
  for (int i = 0; i < kBlock; ++i) largest = std::max(largest, std::fabs(src[i]));
  const float d = largest / 127.0f;
  const float id = inverse(d);
  store_f16(d, dst);
  for (int i = 0; i < kBlock; ++i) dst[2 + i] = static_cast<std::byte>(rounded(src[i] * id));
}

// The value of largest magnitude becomes -8 exactly, so d has the sign opposite to it.
void block_q4_0(const float* src, std::byte* dst) {
  float extreme = src[0];
  for (int i = 1; i < kBlock; ++i) {
    if (std::fabs(src[i]) > std::fabs(extreme)) extreme = src[i];
  }
  const float d = extreme / -8.0f;
  const float id = inverse(d);
  store_f16(d, dst);
  for (int i = 0; i < 16; ++i) {
    const int low = clamped(src[i] * id + 8.5f, 0, 15);
    const int high = clamped(src[i + 16] * id + 8.5f, 0, 15);
    dst[2 + i] = static_cast<std::byte>(low | high << 4);
  }
}

// The smallest value becomes 0, the largest 15.
void block_q4_1(const float* src, std::byte* dst) {
  float smallest = src[0];
  float largest = src[0];
  for (int i = 1; i < kBlock; ++i) {
    smallest = std::min(smallest, src[i]);
    largest = std::max(largest, src[i]);
  }
  const float d = (largest - smallest) / 15.0f;
  const float id = inverse(d);
  store_f16(d, dst);
  store_f16(smallest, dst + 2);
  for (int i = 0; i < 16; ++i) {
    const int low = clamped((src[i] - smallest) * id + 0.5f, 0, 15);
    const int high = clamped((src[i + 16] - smallest) * id + 0.5f, 0, 15);
    dst[4 + i] = static_cast<std::byte>(low | high << 4);
  }
}

void row_16_bits(const float* src, std::byte* dst, int64_t elements, uint16_t (*narrow)(float)) {
  for (int64_t i = 0; i < elements; ++i) {
    const uint16_t bits = narrow(src[i]);
    std::memcpy(dst + 2 * i, &bits, sizeof(bits));
  }
}

}  // namespace

bool can_quantise(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::q8_0:
    case DType::q4_0:
    case DType::q4_1:
      return true;
    default:
      return false;
  }
}

void quantise_row(DType dtype, const float* src, std::byte* dst, int64_t elements) {
  CHECK(can_quantise(dtype), dtype_name(dtype));
  const DTypeInfo& info = dtype_info(dtype);
  CHECK(elements >= 0 && elements % info.block_elements == 0, info.name);
  if (dtype == DType::f32 && elements > 0)
    std::memcpy(dst, src, static_cast<size_t>(elements) * sizeof(float));
  if (dtype == DType::f16) row_16_bits(src, dst, elements, f32_to_f16);
  if (dtype == DType::bf16) row_16_bits(src, dst, elements, f32_to_bf16);
  if (!is_block_quantised(dtype)) return;
  const auto block = dtype == DType::q8_0 ? block_q8_0 : dtype == DType::q4_0 ? block_q4_0 : block_q4_1;
  for (int64_t i = 0; i < elements / kBlock; ++i) block(src + i * kBlock, dst + i * info.block_bytes);
}

}  // namespace tenon
