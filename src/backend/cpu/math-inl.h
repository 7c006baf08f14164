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
