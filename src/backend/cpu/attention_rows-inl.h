// A row of scores of attention and of its gradient, of which what it does not see is hidden. Included once
// per Highway target.
#if defined(TENON_BACKEND_CPU_ATTENTION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_ATTENTION_ROWS_INL_H_
#undef TENON_BACKEND_CPU_ATTENTION_ROWS_INL_H_
#else
#define TENON_BACKEND_CPU_ATTENTION_ROWS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "backend/cpu/attention-inl.h"
#include "backend/cpu/attention_sizes.h"
#include "backend/cpu/math-inl.h"
#include "backend/cpu/simd-inl.h"
#include "base/threads.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// A row of a tile of queries: the sums of exp(score - largest) * v, and of exp(score - largest).
struct RunningRow {
  float* sums;
  float &largest, &total;
};

HWY_INLINE void rescale(const AttentionSizes& sizes, float largest, const RunningRow& row) {
  const float factor = std::exp(row.largest - largest);
  const VF factors = hn::Set(DF(), factor);
  row.total *= factor;
  for (int64_t i = 0; i < sizes.v_head_dim; i += static_cast<int64_t>(kLanes)) {
    store(hn::Mul(load(row.sums + i), factors), row.sums + i);
  }
}

// The products q·k of a row of `columns` become exp(score - largest), and what it does not see zero; the sums
// of earlier tiles are rescaled.
HWY_INLINE void update_row(const AttentionSizes& sizes, Range seen, int64_t columns, float* scores,
                           RunningRow row) {
  const DF d;
  constexpr int64_t kStep = static_cast<int64_t>(kLanes);
  const int64_t first = seen.begin / kStep * kStep, last = round_up(seen.end, kStep);
  VF scale = hn::Set(d, sizes.scale);
  if (sizes.softcap > 0) {
    const VF cap = hn::Set(d, sizes.softcap), inverse = hn::Set(d, 1.0f / sizes.softcap);
    for (int64_t j = first; j < last; j += kStep) {
      store(soft_cap(hn::Mul(load(scores + j), scale), cap, inverse), scores + j);
    }
    scale = hn::Set(d, 1.0f);
  }
  if (seen.size() > 0) {
    std::fill(scores + first, scores + seen.begin, kMinusInfinity);
    std::fill(scores + seen.end, scores + last, kMinusInfinity);
    VF most = hn::Set(d, row.largest);
    for (int64_t j = first; j < last; j += kStep) most = hn::Max(most, hn::Mul(load(scores + j), scale));
    const float largest = max_of(most);
    const VF shift = hn::Set(d, largest);
    VF sum = hn::Zero(d);
    for (int64_t j = first; j < last; j += kStep) {
      const VF p = exp_of_bounded(hn::Sub(hn::Mul(load(scores + j), scale), shift));
      sum = hn::Add(sum, p);
      store(p, scores + j);
    }
    if (largest != row.largest) rescale(sizes, largest, row);
    row.largest = largest;
    row.total += sum_of(sum);
  }
  std::fill(scores, scores + seen.begin, 0.0f);
  std::fill(scores + seen.end, scores + columns, 0.0f);
}

// Probabilities and gradients of scores of a row of `columns`, in place: `p` holds q·k, `ds` dout·v. What it
// does not see becomes zero.
HWY_INLINE void gradient_row(const AttentionSizes& sizes, Range seen, int64_t columns, float lse, float delta,
                             float* p, float* ds) {
  const DF d;
  constexpr int64_t kStep = static_cast<int64_t>(kLanes);
  const VF lses = hn::Set(d, lse), deltas = hn::Set(d, delta), scale = hn::Set(d, sizes.scale);
  const VF one = hn::Set(d, 1.0f), cap = hn::Set(d, sizes.softcap);
  const VF inverse = hn::Set(d, sizes.softcap > 0 ? 1.0f / sizes.softcap : 0.0f);
  for (int64_t j = seen.begin / kStep * kStep; j < seen.end; j += kStep) {
    const VF score = hn::Mul(load(p + j), scale);
    VF slope = scale, value;
    if (sizes.softcap > 0) {
      const VF squashed = hn::Tanh(d, hn::Mul(score, inverse));
      slope = hn::Mul(scale, hn::NegMulAdd(squashed, squashed, one));
      value = hn::MulSub(squashed, cap, lses);
    } else {
      value = hn::Sub(score, lses);
    }
    value = exp_of_bounded(value);
    store(value, p + j);
    store(hn::Mul(hn::Mul(value, slope), hn::Sub(load(ds + j), deltas)), ds + j);
  }
  for (float* row : {p, ds}) {
    std::fill(row, row + seen.begin, 0.0f);
    std::fill(row + seen.end, row + columns, 0.0f);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
