#include "backend/cpu/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/convert.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/convert-inl.h"

#if HWY_ONCE
#include <algorithm>
#include <cmath>

namespace tenon {
namespace {

HWY_EXPORT(widen_row);
HWY_EXPORT(round_row);

template <typename T>
void widen_exact(const std::byte* data, int64_t count, double* out) {
  const T* from = reinterpret_cast<const T*>(data);
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<double>(from[i]);
}

template <typename T>
void round_integers(const double* values, int64_t count, std::byte* out) {
  T* to = reinterpret_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(std::llrint(values[i]));
}

}  // namespace

void widen_to_f32(DType dtype, const std::byte* row, int64_t begin, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(widen_row)(dtype, row, begin, count, out);
}

void round_from_f32(DType dtype, const float* values, int64_t count, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(round_row)(dtype, values, count, out);
}

void widen_to_f64(DType dtype, const std::byte* data, int64_t count, double* out) {
  switch (dtype) {
    case DType::f64:
      return widen_exact<double>(data, count, out);
    case DType::i64:
      return widen_exact<int64_t>(data, count, out);
    case DType::i32:
      return widen_exact<int32_t>(data, count, out);
    default:
      break;
  }
  constexpr int64_t kPart = 1024;  // whole blocks of every dtype
  float part[kPart];
  for (int64_t begin = 0; begin < count; begin += kPart) {
    const int64_t size = std::min(kPart, count - begin);
    widen_to_f32(dtype, data, begin, size, part);
    std::copy(part, part + size, out + begin);
  }
}

void round_from_f64(DType dtype, const double* values, int64_t count, std::byte* out) {
  switch (dtype) {
    case DType::f64:
      return static_cast<void>(std::copy(values, values + count, reinterpret_cast<double*>(out)));
    case DType::i64:
      return round_integers<int64_t>(values, count, out);
    case DType::i32:
      return round_integers<int32_t>(values, count, out);
    case DType::i8:
      return round_integers<int8_t>(values, count, out);
    case DType::u8:
      return round_integers<uint8_t>(values, count, out);
    default:
      break;
  }
  constexpr int64_t kPart = 1024;
  float part[kPart];
  const int64_t bytes = *dtype_bytes(dtype, 1);
  for (int64_t begin = 0; begin < count; begin += kPart) {
    const int64_t size = std::min(kPart, count - begin);
    for (int64_t i = 0; i < size; ++i) part[i] = static_cast<float>(values[begin + i]);
    round_from_f32(dtype, part, size, out + begin * bytes);
  }
}

}  // namespace tenon
#endif
