#include "backend/cpu/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/elementwise.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernel_support.h"
#include "backend/cpu/math-inl.h"
#include "backend/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// out[i] = f(in[0][i], in[1][i], ...) for a range of elements; f gives as many vectors as there are outputs.
struct Operands {
  const std::byte* in[3];
  std::byte* out[2];
};

template <int kInputs, int kOutputs, typename T, typename F>
HWY_INLINE void apply(const Operands& operands, Range range, F f) {
  constexpr int64_t kStep = static_cast<int64_t>(kLanes);
  VF in[kInputs], out[kOutputs];
  int64_t i = range.begin;
  for (; i + kStep <= range.end; i += kStep) {
    for (int k = 0; k < kInputs; ++k) in[k] = load(reinterpret_cast<const T*>(operands.in[k]) + i);
    f(in, out);
    for (int k = 0; k < kOutputs; ++k) store(out[k], reinterpret_cast<T*>(operands.out[k]) + i);
  }
  if (i == range.end) return;
  const size_t rest = static_cast<size_t>(range.end - i);
  for (int k = 0; k < kInputs; ++k) in[k] = load_part(reinterpret_cast<const T*>(operands.in[k]) + i, rest);
  f(in, out);
  for (int k = 0; k < kOutputs; ++k) store_part(out[k], reinterpret_cast<T*>(operands.out[k]) + i, rest);
}

template <typename T>
HWY_INLINE void apply_op(Elementwise op, const Operands& operands, Range range, float factor) {
  const DF d;
  switch (op) {
    case Elementwise::add:
      return apply<2, 1, T>(operands, range,
                            [&](const VF* in, VF* out) HWY_ATTR { out[0] = hn::Add(in[0], in[1]); });
    case Elementwise::mul:
      return apply<2, 1, T>(operands, range,
                            [&](const VF* in, VF* out) HWY_ATTR { out[0] = hn::Mul(in[0], in[1]); });
    case Elementwise::scale: {
      const VF factors = hn::Set(d, factor);
      return apply<1, 1, T>(operands, range,
                            [&](const VF* in, VF* out) HWY_ATTR { out[0] = hn::Mul(in[0], factors); });
    }
    case Elementwise::silu:
      return apply<1, 1, T>(operands, range,
                            [&](const VF* in, VF* out) HWY_ATTR { out[0] = hn::Mul(in[0], sigmoid(in[0])); });
    case Elementwise::silu_grad:
      return apply<2, 1, T>(operands, range, [&](const VF* in, VF* out) HWY_ATTR {
        out[0] = hn::Mul(in[1], silu_slope(in[0], sigmoid(in[0])));
      });
    case Elementwise::swiglu:
      return apply<2, 1, T>(operands, range, [&](const VF* in, VF* out) HWY_ATTR {
        out[0] = hn::Mul(hn::Mul(in[0], sigmoid(in[0])), in[1]);
      });
    case Elementwise::swiglu_grad:
      return apply<3, 2, T>(operands, range, [&](const VF* in, VF* out) HWY_ATTR {
        const VF gate = in[0], up = in[1], dy = in[2], s = sigmoid(gate);
        out[0] = hn::Mul(hn::Mul(dy, up), silu_slope(gate, s));
        out[1] = hn::Mul(hn::Mul(dy, gate), s);
      });
  }
}

void apply_range(Elementwise op, DType dtype, const Operands& operands, Range range, float factor) {
  if (dtype == DType::bf16) {
    apply_op<bf16>(op, operands, range, factor);
  } else {
    apply_op<float>(op, operands, range, factor);
  }
}

void run_all(Elementwise op, const KernelCall& call, float factor) {
  Operands operands{};
  for (size_t i = 0; i < call.inputs.size(); ++i) operands.in[i] = call.inputs[i].data;
  for (size_t i = 0; i < call.outputs.size(); ++i) operands.out[i] = call.outputs[i].data;
  const Type& type = call.outputs[0].type;
  call.threads->parallel_for(type.elements(), kElementGrain,
                             [&](Range range) { apply_range(op, type.dtype, operands, range, factor); });
}

template <typename T>
void add_range(const float* total, const T* x, float* out, Range range) {
  int64_t i = range.begin;
  for (; i + static_cast<int64_t>(kLanes) <= range.end; i += kLanes) {
    store(hn::Add(load(total + i), load(x + i)), out + i);
  }
  if (i == range.end) return;
  const size_t rest = static_cast<size_t>(range.end - i);
  store_part(hn::Add(load_part(total + i, rest), load_part(x + i, rest)), out + i, rest);
}

void add_to_total(const KernelCall& call) {
  const float* total = input_as<float>(call, 0);
  float* out = output_as<float>(call, 0);
  call.threads->parallel_for(call.outputs[0].type.elements(), kElementGrain, [&](Range range) {
    if (call.inputs[1].type.dtype == DType::bf16) {
      add_range(total, input_as<bf16>(call, 1), out, range);
    } else {
      add_range(total, input_as<float>(call, 1), out, range);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {
HWY_EXPORT(run_all);
HWY_EXPORT(add_to_total);
}  // namespace

void run_elementwise(Elementwise op, const KernelCall& call, float factor) {
  HWY_DYNAMIC_DISPATCH(run_all)(op, call, factor);
}

void run_accumulate(const KernelCall& call) {
  HWY_DYNAMIC_DISPATCH(add_to_total)(call);
}

}  // namespace tenon
#endif
