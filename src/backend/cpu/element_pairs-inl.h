// Two vectors of elements at a time, in an order that costs least to widen: f32 as they lie, bf16 the even
// ones and then the odd ones, which are the halves of 32-bit words. Sums of products do not mind the order
// where both sides have it. Included once per Highway target.
#if defined(TENON_BACKEND_CPU_ELEMENT_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_ELEMENT_PAIRS_INL_H_
#undef TENON_BACKEND_CPU_ELEMENT_PAIRS_INL_H_
#else
#define TENON_BACKEND_CPU_ELEMENT_PAIRS_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "backend/cpu/simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

constexpr int64_t kStep = static_cast<int64_t>(kLanes);
constexpr int64_t kPairStep = 2 * kStep;

// One of the two vectors at p.
template <int kHalf>
HWY_INLINE VF load_half(const float* p) {
  return load(p + kHalf * kStep);
}
#if HWY_TARGET == HWY_SCALAR
template <int kHalf>
HWY_INLINE VF load_half(const bf16* p) {
  return load(p + kHalf);
}
#else
template <int kHalf>
HWY_INLINE VF load_half(const bf16* p) {
  const hn::RebindToUnsigned<DF> words;
  const auto pairs = hn::BitCast(words, hn::LoadU(hn::Repartition<bf16, DF>(), p));
  if constexpr (kHalf == 0) return hn::BitCast(DF(), hn::ShiftLeft<16>(pairs));
  return hn::BitCast(DF(), hn::And(pairs, hn::Set(words, 0xffff0000u)));
}
#endif

struct Two {
  VF first, second;
};

template <typename T>
HWY_INLINE Two load_two(const T* p) {
  return {load_half<0>(p), load_half<1>(p)};
}

HWY_INLINE void store_two(Two v, float* p) {
  store(v.first, p);
  store(v.second, p + kStep);
}
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void store_two(Two v, bf16* p) {
  store(v.first, p);
  store(v.second, p + 1);
}
#else
HWY_INLINE void store_two(Two v, bf16* p) {
  const hn::RebindToUnsigned<DF> words;
  const hn::Repartition<bf16, DF> halves;
  const auto even = hn::BitCast(words, round_to_bf16(v.first));
  const auto odd = hn::BitCast(words, round_to_bf16(v.second));
  hn::StoreU(hn::BitCast(halves, hn::Or(hn::ShiftRight<16>(even), odd)), halves, p);
}
#endif

// The first `count` of kPairStep elements; the rest of a load is zero.
template <typename T>
HWY_INLINE Two load_two_part(const T* p, int64_t count) {
  T elements[kPairStep] = {};
  std::memcpy(elements, p, static_cast<size_t>(count) * sizeof(T));
  return load_two(elements);
}
template <typename T>
HWY_INLINE void store_two_part(Two v, T* p, int64_t count) {
  T elements[kPairStep];
  store_two(v, elements);
  std::memcpy(p, elements, static_cast<size_t>(count) * sizeof(T));
}

// The sums of the lanes of four vectors, each in the same order of additions.
HWY_INLINE void store_sums(VF v0, VF v1, VF v2, VF v3, float* out) {
#if HWY_TARGET == HWY_SCALAR
  out[0] = sum_of(v0);
  out[1] = sum_of(v1);
  out[2] = sum_of(v2);
  out[3] = sum_of(v3);
#else
  const hn::RepartitionToWide<DF> pairs;
  const auto halves = [](VF a, VF b) HWY_ATTR {
    return hn::BitCast(hn::RepartitionToWide<DF>(),
                       hn::Add(hn::InterleaveLower(DF(), a, b), hn::InterleaveUpper(DF(), a, b)));
  };
  const auto a = halves(v0, v1), b = halves(v2, v3);
  const VF quarters = hn::Add(hn::BitCast(DF(), hn::InterleaveLower(pairs, a, b)),
                              hn::BitCast(DF(), hn::InterleaveUpper(pairs, a, b)));
  const hn::Half<DF> dh;
  const auto upper = hn::Add(hn::LowerHalf(dh, quarters), hn::UpperHalf(dh, quarters));
  if constexpr (kLanes == 8) {
    hn::StoreU(upper, dh, out);
  } else {
    const hn::Half<decltype(dh)> dq;
    hn::StoreU(hn::Add(hn::LowerHalf(dq, upper), hn::UpperHalf(dq, upper)), dq, out);
  }
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
