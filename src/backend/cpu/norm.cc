#include "backend/cpu/norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/norm.cc"
#include "hwy/foreach_target.h"
//
#include <cmath>

#include "backend/cpu/kernel_support.h"
#include "backend/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

constexpr int64_t kStep = static_cast<int64_t>(kLanes);

// f(i, lanes) for each vector of n elements; lanes is kLanes but in the last.
template <typename F>
HWY_INLINE void each_part(int64_t n, F f) {
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) f(i, kLanes);
  if (i < n) f(i, static_cast<size_t>(n - i));
}
template <typename T>
HWY_INLINE VF load_lanes(const T* p, size_t lanes) {
  return lanes == kLanes ? load(p) : load_part(p, lanes);
}
template <typename T>
HWY_INLINE void store_lanes(VF v, T* p, size_t lanes) {
  if (lanes == kLanes) return store(v, p);
  store_part(v, p, lanes);
}

struct NormAttrs {
  float eps, offset;
};

template <typename T>
HWY_INLINE float inverse_rms(const T* x, int64_t n, float eps) {
  VF squares = hn::Zero(DF());
  each_part(n, [&](int64_t i, size_t lanes) HWY_ATTR {
    const VF v = load_lanes(x + i, lanes);
    squares = hn::MulAdd(v, v, squares);
  });
  return 1.0f / std::sqrt(sum_of(squares) / static_cast<float>(n) + eps);
}

template <typename T, typename W>
void normalise_row(const T* x, const W* weight, int64_t n, NormAttrs attrs, T* out) {
  const VF r = hn::Set(DF(), inverse_rms(x, n, attrs.eps)), offset = hn::Set(DF(), attrs.offset);
  each_part(n, [&](int64_t i, size_t lanes) HWY_ATTR {
    const VF w = hn::Add(load_lanes(weight + i, lanes), offset);
    store_lanes(hn::Mul(hn::Mul(load_lanes(x + i, lanes), r), w), out + i, lanes);
  });
}

template <typename T, typename W>
void gradient_row(const T* x, const W* weight, const T* dy, int64_t n, NormAttrs attrs, T* out) {
  const VF offset = hn::Set(DF(), attrs.offset);
  VF products = hn::Zero(DF());
  each_part(n, [&](int64_t i, size_t lanes) HWY_ATTR {
    const VF g = hn::Mul(load_lanes(dy + i, lanes), hn::Add(load_lanes(weight + i, lanes), offset));
    products = hn::MulAdd(g, load_lanes(x + i, lanes), products);
  });
  const float r = inverse_rms(x, n, attrs.eps);
  const VF rs = hn::Set(DF(), r), pull = hn::Set(DF(), r * r * (sum_of(products) / static_cast<float>(n)));
  each_part(n, [&](int64_t i, size_t lanes) HWY_ATTR {
    const VF g = hn::Mul(load_lanes(dy + i, lanes), hn::Add(load_lanes(weight + i, lanes), offset));
    store_lanes(hn::Mul(rs, hn::NegMulAdd(load_lanes(x + i, lanes), pull, g)), out + i, lanes);
  });
}

template <typename T, typename W>
void run_rows(const KernelCall& call, bool gradient) {
  const NormAttrs attrs{static_cast<float>(call.attrs->real("eps")),
                        static_cast<float>(call.attrs->real("weight_offset"))};
  const Shape& shape = call.inputs[0].type.shape;
  const int64_t n = shape[-1];
  const T* x = input_as<T>(call, 0);
  const W* weight = input_as<W>(call, 1);
  T* out = output_as<T>(call, 0);
  call.threads->parallel_for(shape.rows(), 4, [&](Range rows) {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      if (gradient) {
        gradient_row(x + row * n, weight, input_as<T>(call, 2) + row * n, n, attrs, out + row * n);
      } else {
        normalise_row(x + row * n, weight, n, attrs, out + row * n);
      }
    }
  });
}

void run_typed_rows(const KernelCall& call, bool gradient) {
  const bool x16 = call.inputs[0].type.dtype == DType::bf16, w16 = call.inputs[1].type.dtype == DType::bf16;
  if (x16) return w16 ? run_rows<bf16, bf16>(call, gradient) : run_rows<bf16, float>(call, gradient);
  return w16 ? run_rows<float, bf16>(call, gradient) : run_rows<float, float>(call, gradient);
}

template <typename T>
void sum_columns(const T* x, const T* dy, const float* inverse, int64_t rows, int64_t n, Range columns,
                 float* out) {
  std::fill(out + columns.begin, out + columns.end, 0.0f);
  for (int64_t row = 0; row < rows; ++row) {
    const VF r = hn::Set(DF(), inverse[row]);
    each_part(columns.size(), [&](int64_t i, size_t lanes) HWY_ATTR {
      const int64_t at = columns.begin + i;
      const VF scaled = hn::Mul(load_lanes(x + row * n + at, lanes), r);
      const VF sum = hn::MulAdd(load_lanes(dy + row * n + at, lanes), scaled, load_lanes(out + at, lanes));
      store_lanes(sum, out + at, lanes);
    });
  }
}

template <typename T>
void weight_gradient(const KernelCall& call) {
  const Shape& shape = call.inputs[0].type.shape;
  const int64_t n = shape[-1], rows = n == 0 ? 0 : shape.rows();
  const auto eps = static_cast<float>(call.attrs->real("eps"));
  const T *x = input_as<T>(call, 0), *dy = input_as<T>(call, 1);
  float* inverse = reinterpret_cast<float*>(call.workspace.data());
  call.threads->parallel_for(rows, 4, [&](Range range) {
    for (int64_t row = range.begin; row < range.end; ++row) inverse[row] = inverse_rms(x + row * n, n, eps);
  });
  call.threads->parallel_for(n, 64, [&](Range columns) {
    sum_columns(x, dy, inverse, rows, n, columns, output_as<float>(call, 0));
  });
}

void typed_weight_gradient(const KernelCall& call) {
  if (call.inputs[0].type.dtype == DType::bf16) return weight_gradient<bf16>(call);
  weight_gradient<float>(call);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {
HWY_EXPORT(run_typed_rows);
HWY_EXPORT(typed_weight_gradient);
}  // namespace

void run_rms_norm(const KernelCall& call) {
  HWY_DYNAMIC_DISPATCH(run_typed_rows)(call, false);
}
void run_rms_norm_grad_input(const KernelCall& call) {
  HWY_DYNAMIC_DISPATCH(run_typed_rows)(call, true);
}
void run_rms_norm_grad_weight(const KernelCall& call) {
  HWY_DYNAMIC_DISPATCH(typed_weight_gradient)(call);
}

}  // namespace tenon
#endif
