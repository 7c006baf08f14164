// Rows of any dtype to f32 and back, in vectors. Included once per Highway target.
#if defined(TENON_BACKEND_CPU_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_CONVERT_INL_H_
#undef TENON_BACKEND_CPU_CONVERT_INL_H_
#else
#define TENON_BACKEND_CPU_CONVERT_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "backend/cpu/dequantise-inl.h"
#include "backend/cpu/simd-inl.h"
#include "base/check.h"
#include "base/dtype.h"
#include "base/half.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

template <typename T>
HWY_INLINE void widen_numbers(const std::byte* row, int64_t begin, int64_t count, float* out) {
  const T* from = reinterpret_cast<const T*>(row) + begin;
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(from[i]);
}

HWY_INLINE void widen_bf16(const bf16* from, int64_t count, float* out) {
  int64_t i = 0;
  for (; i + static_cast<int64_t>(kLanes) <= count; i += kLanes) store(load(from + i), out + i);
  for (; i < count; ++i) out[i] = bf16_to_f32(from[i].bits);
}

HWY_INLINE void widen_f16(const uint16_t* from, int64_t count, float* out) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR  // whose promotion turns infinities into numbers
  const hn::Rebind<hwy::float16_t, DF> d16;
  const hn::Rebind<uint16_t, DF> du16;
  for (; i + static_cast<int64_t>(kLanes) <= count; i += kLanes) {
    store(hn::PromoteTo(DF(), hn::BitCast(d16, hn::LoadU(du16, from + i))), out + i);
  }
#endif
  for (; i < count; ++i) out[i] = f16_to_f32(from[i]);
}

// The contract of convert.h's widen_to_f32.
inline void widen_row(DType dtype, const std::byte* row, int64_t begin, int64_t count, float* out) {
  switch (dtype) {
    case DType::f32:
      if (count > 0)
        std::memcpy(out, reinterpret_cast<const float*>(row) + begin, static_cast<size_t>(count) * 4);
      return;
    case DType::bf16:
      return widen_bf16(reinterpret_cast<const bf16*>(row) + begin, count, out);
    case DType::f16:
      return widen_f16(reinterpret_cast<const uint16_t*>(row) + begin, count, out);
    case DType::f64:
      return widen_numbers<double>(row, begin, count, out);
    case DType::i64:
      return widen_numbers<int64_t>(row, begin, count, out);
    case DType::i32:
      return widen_numbers<int32_t>(row, begin, count, out);
    case DType::i8:
      return widen_numbers<int8_t>(row, begin, count, out);
    case DType::u8:
      return widen_numbers<uint8_t>(row, begin, count, out);
    default:
      return dequantise(dtype, row, begin, count, out);
  }
}

HWY_INLINE void round_in_place_to_bf16(float* values, int64_t count) {
  int64_t i = 0;
  for (; i + static_cast<int64_t>(kLanes) <= count; i += kLanes)
    store(round_to_bf16(load(values + i)), values + i);
  for (; i < count; ++i) values[i] = bf16_to_f32(f32_to_bf16(values[i]));
}

// The contract of convert.h's round_from_f32.
inline void round_row(DType dtype, const float* values, int64_t count, std::byte* out) {
  int64_t i = 0;
  switch (dtype) {
    case DType::f32:
      if (count > 0) std::memcpy(out, values, static_cast<size_t>(count) * 4);
      return;
    case DType::bf16: {
      bf16* to = reinterpret_cast<bf16*>(out);
      for (; i + static_cast<int64_t>(kLanes) <= count; i += kLanes) store(load(values + i), to + i);
      for (; i < count; ++i) to[i].bits = f32_to_bf16(values[i]);
      return;
    }
    case DType::f16: {
      uint16_t* to = reinterpret_cast<uint16_t*>(out);
      for (; i < count; ++i) to[i] = f32_to_f16(values[i]);
      return;
    }
    case DType::f64: {
      double* to = reinterpret_cast<double*>(out);
      for (; i < count; ++i) to[i] = values[i];
      return;
    }
    default:
      CHECK(false, "f32 is rounded to floating dtypes only");
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
