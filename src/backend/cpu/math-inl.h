// Functions of f32 vectors that several kernels use, accurate to a few units in the last place. Included once
// per Highway target.
#if defined(TENON_BACKEND_CPU_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_MATH_INL_H_
#undef TENON_BACKEND_CPU_MATH_INL_H_
#else
#define TENON_BACKEND_CPU_MATH_INL_H_
#endif

#include "backend/cpu/simd-inl.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// e^x; 0 for large negative x.
HWY_INLINE VF exp_of(VF x) {
  return hn::Exp(DF(), x);
}

// e^x for x up to 88, in half the instructions; e^-87 below -87. x = n ln 2 + r, n rounded by adding 1.5 *
// 2^23, whose low bits then hold it; e^r is its minimax polynomial on [-ln 2 / 2, ln 2 / 2], off by 3e-9 at
// most.
HWY_INLINE VF exp_of_bounded(VF x) {
  const DF d;
  const hn::RebindToUnsigned<DF> du;
  const VF rounding = hn::Set(d, 12582912.0f), one = hn::Set(d, 1.0f);
  x = hn::Max(hn::Set(d, -87.0f), x);
  const VF shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), rounding);
  const VF n = hn::Sub(shifted, rounding);
  VF r = hn::NegMulAdd(n, hn::Set(d, 0.693145751953125f), x);
  r = hn::NegMulAdd(n, hn::Set(d, 1.428606765330187045e-6f), r);
  VF e = hn::MulAdd(hn::Set(d, 0.0013814599951729178f), r, hn::Set(d, 0.0083687175065279f));
  e = hn::MulAdd(e, r, hn::Set(d, 0.04166838899254799f));
  e = hn::MulAdd(e, r, hn::Set(d, 0.1666652113199234f));
  e = hn::MulAdd(e, r, hn::Set(d, 0.4999999403953552f));
  e = hn::MulAdd(hn::MulAdd(e, r, one), r, one);
  const auto power = hn::ShiftLeft<23>(hn::BitCast(du, shifted));
  return hn::BitCast(d, hn::Add(hn::BitCast(du, e), power));
}

// 1 / (1 + e^-x), from the exponential of -|x|, which cannot overflow.
HWY_INLINE VF sigmoid(VF x) {
  const DF d;
  const VF one = hn::Set(d, 1.0f);
  const VF e = exp_of(hn::Neg(hn::Abs(x)));
  const VF numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Div(numerator, hn::Add(one, e));
}

// The derivative of x * sigmoid(x), where s = sigmoid(x).
HWY_INLINE VF silu_slope(VF x, VF s) {
  const VF one = hn::Set(DF(), 1.0f);
  return hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one));
}

// cap * tanh(x / cap).
HWY_INLINE VF soft_cap(VF x, VF cap, VF inverse_cap) {
  return hn::Mul(cap, hn::Tanh(DF(), hn::Mul(x, inverse_cap)));
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
