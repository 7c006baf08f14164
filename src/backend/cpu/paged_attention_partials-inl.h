// The online softmax of cached attention: what a row has of its positions so far, how a block of scores is
// added to it, and how the results of chunks are merged. Included once per Highway target.
#if defined(TENON_BACKEND_CPU_PAGED_ATTENTION_PARTIALS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_PAGED_ATTENTION_PARTIALS_INL_H_
#undef TENON_BACKEND_CPU_PAGED_ATTENTION_PARTIALS_INL_H_
#else
#define TENON_BACKEND_CPU_PAGED_ATTENTION_PARTIALS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backend/cpu/element_pairs-inl.h"
#include "backend/cpu/math-inl.h"
#include "backend/cpu/paged_attention_sizes.h"
#include "backend/cpu/simd-inl.h"
#include "base/threads.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// A partial result of a row: the weighted values of the chunk, and where these end the largest score and the
// sum of exponentials.
struct Partial {
  float* values;
  int64_t count;  // padding included

  float& largest() const { return values[count]; }
  float& sum() const { return values[count + 1]; }
};

HWY_INLINE void clear(const Partial& partial) {
  std::fill_n(partial.values, partial.count + 2, 0.0f);
  partial.largest() = kNothing;
}

HWY_INLINE void scale(const Partial& partial, float factor) {
  const VF f = hn::Set(DF(), factor);
  for (int64_t i = 0; i < partial.count; i += kStep) {
    store(hn::Mul(load(partial.values + i), f), partial.values + i);
  }
  partial.sum() *= factor;
}

// The lanes of the vector from score j on that are visible.
HWY_INLINE hn::Mask<DF> visible_lanes(Range visible, int64_t j) {
  const auto before = hn::FirstN(DF(), static_cast<size_t>(std::clamp<int64_t>(visible.begin - j, 0, kStep)));
  const auto upto = hn::FirstN(DF(), static_cast<size_t>(std::clamp<int64_t>(visible.end - j, 0, kStep)));
  return hn::AndNot(before, upto);
}

// Turns the visible scores of a row into exponentials, the others into zeros, and rescales its partial.
// kWhole: all are visible.
template <bool kWhole>
HWY_INLINE void update_visible(const AttentionSizes& sizes, float* scores, Range visible,
                               const Partial& partial) {
  const DF d;
  VF most = hn::Set(d, partial.largest());
  for (int64_t j = 0; j < kBlockPositions; j += kStep) {
    VF v = load(scores + j);
    if (sizes.softcap > 0) {
      v = soft_cap(v, hn::Set(d, sizes.softcap), hn::Set(d, 1.0f / sizes.softcap));
      store(v, scores + j);
    }
    if constexpr (!kWhole) v = hn::IfThenElse(visible_lanes(visible, j), v, hn::Set(d, kNothing));
    most = hn::Max(most, v);
  }
  const float largest = max_of(most);
  const VF shift = hn::Set(d, largest);
  VF sum = hn::Zero(d);
  for (int64_t j = 0; j < kBlockPositions; j += kStep) {
    VF p = exp_of_bounded(hn::Sub(load(scores + j), shift));
    if constexpr (!kWhole) p = hn::IfThenElseZero(visible_lanes(visible, j), p);
    sum = hn::Add(sum, p);
    store(p, scores + j);
  }
  if (largest != partial.largest()) {
    scale(partial, std::exp(partial.largest() - largest));
    partial.largest() = largest;
  }
  partial.sum() += sum_of(sum);
}

inline void update_partial(const AttentionSizes& sizes, float* scores, Range visible,
                           const Partial& partial) {
  if (visible.begin == 0 && visible.end == kBlockPositions) {
    update_visible<true>(sizes, scores, visible, partial);
  } else if (visible.size() > 0) {
    update_visible<false>(sizes, scores, visible, partial);
  } else {
    std::fill_n(scores, kBlockPositions, 0.0f);
  }
}

// Adds a chunk's partial to the total of the chunks before it.
inline void merge_partial(const Partial& partial, const Partial& total) {
  if (partial.largest() == kNothing) return;
  const float largest = std::max(partial.largest(), total.largest());
  const float old_factor = std::exp(total.largest() - largest);
  const float new_factor = std::exp(partial.largest() - largest);
  const VF f = hn::Set(DF(), old_factor), g = hn::Set(DF(), new_factor);
  for (int64_t i = 0; i < total.count; i += kStep) {
    float* to = total.values + i;
    store(hn::MulAdd(load(to), f, hn::Mul(load(partial.values + i), g)), to);
  }
  total.sum() = total.sum() * old_factor + partial.sum() * new_factor;
  total.largest() = largest;
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
