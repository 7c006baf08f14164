// adamw in f32 vectors.
#include <cmath>

#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/adamw_vector.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

struct AdamWStep {
  VF clip, beta1, rest1, beta2, rest2, eps, decay, rate, inverse_bias1, inverse_bias2;
};

AdamWStep step_of(const KernelCall& call) {
  const DF d;
  const auto real = [&](const char* name) { return call.attrs->real(name); };
  const auto set = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<float>(value)); };
  const float* hyper = input_as<float>(call, 5);
  const double lr = hyper[0], bias1 = hyper[1], bias2 = hyper[2];
  const double max_norm = real("max_norm"), norm = *input_as<float>(call, 4);
  const double clip = max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
  return {set(clip),
          set(real("beta1")),
          set(1 - real("beta1")),
          set(real("beta2")),
          set(1 - real("beta2")),
          set(real("eps")),
          set(1 - lr * real("weight_decay")),
          set(lr),
          set(1 / bias1),
          set(1 / bias2)};
}

struct AdamWLanes {
  VF param, m, v;
};
HWY_INLINE AdamWLanes update(const AdamWStep& step, const AdamWLanes& old, VF gradient) {
  const VF g = hn::Mul(step.clip, gradient);
  const VF m = hn::MulAdd(step.beta1, old.m, hn::Mul(step.rest1, g));
  const VF v = hn::MulAdd(step.beta2, old.v, hn::Mul(step.rest2, hn::Mul(g, g)));
  const VF denominator = hn::Add(hn::Sqrt(hn::Mul(v, step.inverse_bias2)), step.eps);
  const VF move = hn::Div(hn::Mul(step.rate, hn::Mul(m, step.inverse_bias1)), denominator);
  return {hn::MulSub(old.param, step.decay, move), m, v};
}

void update_all(const KernelCall& call) {
  if (!std::isfinite(*input_as<float>(call, 4))) return;  // everything is updated in place
  const AdamWStep step = step_of(call);
  const float *param = input_as<float>(call, 0), *grad = input_as<float>(call, 1);
  const float *m = input_as<float>(call, 2), *v = input_as<float>(call, 3);
  float *new_param = output_as<float>(call, 0), *new_m = output_as<float>(call, 1),
        *new_v = output_as<float>(call, 2);
  call.threads->parallel_for(call.outputs[0].type.elements(), kElementGrain, [&](Range range) HWY_ATTR {
    int64_t i = range.begin;
    for (; i + static_cast<int64_t>(kLanes) <= range.end; i += kLanes) {
      const AdamWLanes out = update(step, {load(param + i), load(m + i), load(v + i)}, load(grad + i));
      store(out.param, new_param + i);
      store(out.m, new_m + i);
      store(out.v, new_v + i);
    }
    if (i == range.end) return;
    const size_t rest = static_cast<size_t>(range.end - i);
    const AdamWLanes out =
        update(step, {load_part(param + i, rest), load_part(m + i, rest), load_part(v + i, rest)},
               load_part(grad + i, rest));
    store_part(out.param, new_param + i, rest);
    store_part(out.m, new_m + i, rest);
    store_part(out.v, new_v + i, rest);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {
HWY_EXPORT(update_all);
}  // namespace

const KernelDef& adamw_vector_kernel() {
  static constexpr KernelDef def{
      .op = "adamw", .name = "adamw_vector", .serves = serves_all, .run = [](const KernelCall& call) {
        HWY_DYNAMIC_DISPATCH(update_all)(call);
      }};
  return def;
}

}  // namespace tenon
#endif
