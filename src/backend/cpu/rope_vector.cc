// rope over f32 or bf16: vectors for the half-split layout, one pair at a time for the interleaved one.
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/rope_vector.cc"
#include "hwy/foreach_target.h"
//
#include <cstring>

#include "backend/cpu/simd-inl.h"
#include "base/half.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

HWY_INLINE float to_float(float x) {
  return x;
}
HWY_INLINE float to_float(bf16 x) {
  return bf16_to_f32(x.bits);
}
HWY_INLINE void assign(float value, float& out) {
  out = value;
}
HWY_INLINE void assign(float value, bf16& out) {
  out.bits = f32_to_bf16(value);
}

// x and out may be the same head: both elements of a pair are read before either is written.
template <typename T>
HWY_INLINE void rotate_pair(const T* x, T* out, int64_t first, int64_t second, float c, float s) {
  const float a = to_float(x[first]), b = to_float(x[second]);
  assign(a * c - b * s, out[first]);
  assign(b * c + a * s, out[second]);
}

template <typename T>
HWY_INLINE void rotate_halves(const T* x, T* out, const float* cosines, const float* sines, float direction,
                              int64_t pairs) {
  const VF sign = hn::Set(DF(), direction);
  int64_t i = 0;
  for (; i + static_cast<int64_t>(kLanes) <= pairs; i += kLanes) {
    const VF a = load(x + i), b = load(x + pairs + i), c = load(cosines + i),
             s = hn::Mul(sign, load(sines + i));
    store(hn::NegMulAdd(b, s, hn::Mul(a, c)), out + i);
    store(hn::MulAdd(a, s, hn::Mul(b, c)), out + pairs + i);
  }
  for (; i < pairs; ++i) rotate_pair(x, out, i, i + pairs, cosines[i], direction * sines[i]);
}

template <typename T>
void rotate_tokens(const KernelCall& call, Range tokens) {
  const Shape& shape = call.inputs[0].type.shape;
  const int64_t heads = shape[1], head_dim = shape[2], pairs = call.inputs[1].type.shape[2];
  const bool interleaved = call.attrs->flag("interleaved");
  const float direction = call.attrs->flag("inverse") ? -1.0f : 1.0f;
  for (int64_t t = tokens.begin; t < tokens.end; ++t) {
    const float* cosines = input_as<float>(call, 1) + t * 2 * pairs;
    const float* sines = cosines + pairs;
    for (int64_t h = 0; h < heads; ++h) {
      const T* x = input_as<T>(call, 0) + (t * heads + h) * head_dim;
      T* out = output_as<T>(call, 0) + (t * heads + h) * head_dim;
      if (interleaved) {
        for (int64_t i = 0; i < pairs; ++i)
          rotate_pair(x, out, 2 * i, 2 * i + 1, cosines[i], direction * sines[i]);
      } else {
        rotate_halves(x, out, cosines, sines, direction, pairs);
      }
      if (x != out)
        std::memcpy(out + 2 * pairs, x + 2 * pairs, static_cast<size_t>(head_dim - 2 * pairs) * sizeof(T));
    }
  }
}

void rotate(const KernelCall& call) {
  const Type& type = call.inputs[0].type;
  call.threads->parallel_for(type.shape[0], 4, [&](Range tokens) {
    if (type.dtype == DType::bf16) {
      rotate_tokens<bf16>(call, tokens);
    } else {
      rotate_tokens<float>(call, tokens);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {
HWY_EXPORT(rotate);
}  // namespace

const KernelDef& rope_vector_kernel() {
  static constexpr KernelDef def{
      .op = "rope", .name = "rope_vector", .serves = serves_vector_dtypes, .run = [](const KernelCall& call) {
        HWY_DYNAMIC_DISPATCH(rotate)(call);
      }};
  return def;
}

}  // namespace tenon
#endif
