// Loads and stores that meet dtypes: every kernel computes in f32 vectors and reads or writes f32 or bf16
// through these. Included once per Highway target.
#if defined(TENON_BACKEND_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_SIMD_INL_H_
#undef TENON_BACKEND_CPU_SIMD_INL_H_
#else
#define TENON_BACKEND_CPU_SIMD_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;
using bf16 = hwy::bfloat16_t;

constexpr size_t kLanes = hn::MaxLanes(DF());

// Rounded to bf16 (nearest, ties to even; NaN stays NaN), as f32.
HWY_INLINE VF round_to_bf16(VF v) {
  const DF d;
  const hn::RebindToUnsigned<DF> du;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7fff)), odd);
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
  const auto kept = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded);
  return hn::BitCast(d, hn::And(kept, hn::Set(du, 0xffff0000u)));
}

HWY_INLINE VF load(const float* p) {
  return hn::LoadU(DF(), p);
}
HWY_INLINE VF load(const bf16* p) {
  return hn::PromoteTo(DF(), hn::LoadU(hn::Rebind<bf16, DF>(), p));
}

HWY_INLINE void store(VF v, float* p) {
  hn::StoreU(v, DF(), p);
}
HWY_INLINE void store(VF v, bf16* p) {
  const hn::Rebind<bf16, DF> d16;
  hn::StoreU(hn::DemoteTo(d16, round_to_bf16(v)), d16, p);  // exact: the low half is zero
}

// The first `count` < kLanes lanes; the rest of a load is zero.
template <typename T>
HWY_INLINE VF load_part(const T* p, size_t count) {
  T lanes[kLanes] = {};
  std::memcpy(lanes, p, count * sizeof(T));
  return load(lanes);
}
template <typename T>
HWY_INLINE void store_part(VF v, T* p, size_t count) {
  T lanes[kLanes];
  store(v, lanes);
  std::memcpy(p, lanes, count * sizeof(T));
}

HWY_INLINE float sum_of(VF v) {
  return hn::GetLane(hn::SumOfLanes(DF(), v));
}
HWY_INLINE float max_of(VF v) {
  return hn::GetLane(hn::MaxOfLanes(DF(), v));
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
