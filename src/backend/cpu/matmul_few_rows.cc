// matmul of up to kMostFewRows rows by a weight stored row by output (trans_b): decoding. Each row of b is
// read once, in order, unpacked, and multiplied with all rows of a: bound by memory.
#include "backend/cpu/kernel_support.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/matmul_few_rows.cc"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/convert-inl.h"
#include "backend/cpu/gemm_pack-inl.h"
#include "backend/cpu/simd-inl.h"
#include "base/checked_math.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// a · b over `count` elements, added to `sum` lane by lane; four chains hide the latency of the additions.
HWY_INLINE VF add_products(const float* a, const float* b, int64_t count, VF sum) {
  constexpr int64_t kStep = static_cast<int64_t>(kLanes);
  VF c0 = hn::Zero(DF()), c1 = c0, c2 = c0, c3 = c0;
  int64_t i = 0;
  for (; i + 4 * kStep <= count; i += 4 * kStep) {
    c0 = hn::MulAdd(load(a + i), load(b + i), c0);
    c1 = hn::MulAdd(load(a + i + kStep), load(b + i + kStep), c1);
    c2 = hn::MulAdd(load(a + i + 2 * kStep), load(b + i + 2 * kStep), c2);
    c3 = hn::MulAdd(load(a + i + 3 * kStep), load(b + i + 3 * kStep), c3);
  }
  for (; i + kStep <= count; i += kStep) c0 = hn::MulAdd(load(a + i), load(b + i), c0);
  if (i < count) {
    const size_t rest = static_cast<size_t>(count - i);
    c1 = hn::MulAdd(load_part(a + i, rest), load_part(b + i, rest), c1);
  }
  return hn::Add(sum, hn::Add(hn::Add(c0, c1), hn::Add(c2, c3)));
}

struct FewRows {
  int64_t m, n, k;
  const float* a;  // [m, k]
  GemmMatrix b;
  bool round_b;
  float alpha;
};

// sums[i] = a's row i · b's row `row`.
void multiply_row(const FewRows& call, int64_t row, float* sums) {
  HWY_ALIGN float buffer[kChunk];
  VF lanes[kMostFewRows];
  for (int64_t i = 0; i < call.m; ++i) lanes[i] = hn::Zero(DF());
  for (int64_t p = 0; p < call.k; p += kChunk) {
    const int64_t count = std::min(kChunk, call.k - p);
    const float* b = row_part(call.b, row, p, count, call.round_b, buffer);
    for (int64_t i = 0; i < call.m; ++i) lanes[i] = add_products(call.a + i * call.k + p, b, count, lanes[i]);
  }
  for (int64_t i = 0; i < call.m; ++i) sums[i] = sum_of(lanes[i]);
}

void multiply_few_rows(const KernelCall& kernel) {
  const TensorView &a = kernel.inputs[0], &b = kernel.inputs[1], &out = kernel.outputs[0];
  float* a32 = reinterpret_cast<float*>(kernel.workspace.data());
  const FewRows call{out.type.shape[0],
                     out.type.shape[1],
                     a.type.shape[1],
                     a32,
                     {b.data, b.type.dtype, b.type.shape[1]},
                     rounds_second(a.type.dtype, b.type.dtype),
                     static_cast<float>(kernel.attrs->real("alpha"))};
  widen_row(a.type.dtype, a.data, 0, call.m * call.k, a32);
  const bool has_addend = kernel.inputs.size() == 3;
  const TensorView addend = has_addend ? kernel.inputs[2] : TensorView{};
  const int64_t addend_stride = has_addend && addend.type.shape.rank() == 2 ? call.n : 0;
  const int64_t out_bytes = *dtype_bytes(out.type.dtype, 1);
  kernel.threads->parallel_for(call.n, 16, [&](Range range) {
    float sums[kMostFewRows];
    for (int64_t j = range.begin; j < range.end; ++j) {
      multiply_row(call, j, sums);
      for (int64_t i = 0; i < call.m; ++i) {
        float value = call.alpha * sums[i], old = 0;
        if (has_addend) {
          widen_row(addend.type.dtype, addend.data, i * addend_stride + j, 1, &old);
          value += old;
        }
        round_row(out.type.dtype, &value, 1, out.data + (i * call.n + j) * out_bytes);
      }
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(multiply_few_rows);

bool serves(const OpSite& site, const DeviceFacts& facts) {
  const Type& out = site.outputs[0];
  return facts.kind == DeviceKind::cpu && !site.attrs.flag("trans_a") && site.attrs.flag("trans_b") &&
         out.shape[0] <= kMostFewRows && is_vector_dtype(site.inputs[0].dtype) &&
         is_vector_dtype(out.dtype) && (site.inputs.size() < 3 || is_vector_dtype(site.inputs[2].dtype));
}

}  // namespace

const KernelDef& matmul_few_rows_kernel() {
  static constexpr KernelDef def{
      .op = "matmul",
      .name = "matmul_few_rows",
      .serves = serves,
      .workspace_bytes = [](const OpSite& site, const DeviceFacts&) { return site.inputs[0].elements() * 4; },
      .cost = [](const OpSite&, const DeviceFacts&) { return 1.0; },
      .run =
          [](const KernelCall& call) {
            HWY_DYNAMIC_DISPATCH(multiply_few_rows)
            (call);
          }};
  return def;
}

}  // namespace tenon
#endif
