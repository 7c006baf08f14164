#include "backend/cpu/cross_entropy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/cross_entropy.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"
#include "backend/cpu/math-inl.h"
#include "backend/cpu/simd-inl.h"
#include "base/check.h"
#include "base/checked_math.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// f(vector) for every element, stored in place where kStore; lanes past the end hold `fill`.
template <typename F>
HWY_INLINE void each_vector(float* values, int64_t count, float fill, F f) {
  constexpr int64_t kStep = static_cast<int64_t>(kLanes);
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) store(f(load(values + i)), values + i);
  if (i == count) return;
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, fill);
  const size_t rest = static_cast<size_t>(count - i);
  std::memcpy(lanes, values + i, rest * sizeof(float));
  store(f(load(lanes)), lanes);
  std::memcpy(values + i, lanes, rest * sizeof(float));
}

float largest_of(float* values, int64_t count) {
  VF largest = hn::Set(DF(), -std::numeric_limits<float>::infinity());
  each_vector(values, count, -std::numeric_limits<float>::infinity(), [&](VF v) HWY_ATTR {
    largest = hn::Max(largest, v);
    return v;
  });
  return max_of(largest);
}

// The sum of exp(z - largest), which the values become where kKept.
template <bool kKept>
double sum_of_exponentials(float* values, int64_t count, float largest) {
  const VF shift = hn::Set(DF(), largest), least = hn::Set(DF(), -87.0f);
  VF sum = hn::Zero(DF());
  each_vector(values, count, -std::numeric_limits<float>::infinity(), [&](VF v) HWY_ATTR {
    const VF x = hn::Sub(v, shift);
    const VF e = hn::IfThenZeroElse(hn::Lt(x, least), exp_of_bounded(x));
    sum = hn::Add(sum, e);
    return kKept ? e : v;
  });
  return sum_of(sum);
}

void cap_logits(float* logits, int64_t count, float softcap) {
  const VF cap = hn::Set(DF(), softcap), inverse = hn::Set(DF(), 1.0f / softcap);
  each_vector(logits, count, 0.0f, [&](VF v) HWY_ATTR { return soft_cap(v, cap, inverse); });
}

// The label's exponential is summed apart: once a row is learnt the others are small beside it.
template <bool kKept>
float take_chunk(float* logits, int64_t count, int64_t first, int32_t label, float softcap,
                 RunningSoftmax& state) {
  const float raw = largest_of(logits, count);
  if (state.predicted < 0 || raw > state.largest_raw) {
    state.largest_raw = raw;
    state.predicted = static_cast<int32_t>(first + (std::find(logits, logits + count, raw) - logits));
    // A row with a NaN has no largest logit.
    state.predicted = std::min(state.predicted, static_cast<int32_t>(first + count - 1));
  }
  float largest = raw;
  if (softcap > 0) {
    cap_logits(logits, count, softcap);
    largest = largest_of(logits, count);
  }
  double factor = 1;
  if (state.sum == 0) {
    state.largest = largest;
  } else if (largest > state.largest) {
    factor = std::exp(static_cast<double>(state.largest) - largest);
    state.sum *= factor;
    state.others *= factor;
    state.largest = largest;
  }
  const int64_t at = label >= first && label < first + count ? label - first : -1;
  if (at >= 0) {
    state.label_logit = logits[at];
    state.sum += std::exp(static_cast<double>(logits[at]) - state.largest);
    logits[at] = -std::numeric_limits<float>::infinity();
  }
  const double others = sum_of_exponentials<kKept>(logits, count, state.largest);
  if (at >= 0) logits[at] = kKept ? 0.0f : state.label_logit;
  state.sum += others;
  state.others += others;
  return static_cast<float>(factor);
}

void take_logits(float* logits, int64_t count, int64_t first, int32_t label, float softcap,
                 RunningSoftmax& state) {
  take_chunk<false>(logits, count, first, label, softcap, state);
}

float take_weights(float* logits, int64_t count, int64_t first, int32_t label, RunningSoftmax& state) {
  return take_chunk<true>(logits, count, first, label, 0.0f, state);
}

void take_gradient(float* logits, int64_t count, int64_t first, int32_t label, float softcap, float scale,
                   float lse, float dloss) {
  const DF d;
  const VF lses = hn::Set(d, lse), factor = hn::Set(d, dloss * scale), one = hn::Set(d, 1.0f);
  const int64_t at = label >= first && label < first + count ? label - first : -1;
  const float label_logit = at >= 0 ? logits[at] : 0.0f;
  if (softcap > 0) {
    const VF cap = hn::Set(d, softcap), inverse = hn::Set(d, 1.0f / softcap);
    each_vector(logits, count, 0.0f, [&](VF v) HWY_ATTR {
      const VF squashed = hn::Tanh(d, hn::Mul(v, inverse));
      const VF slope = hn::NegMulAdd(squashed, squashed, one);
      return hn::Mul(hn::Mul(exp_of(hn::MulSub(squashed, cap, lses)), slope), factor);
    });
  } else {
    each_vector(logits, count, 0.0f,
                [&](VF v) HWY_ATTR { return hn::Mul(exp_of(hn::Sub(v, lses)), factor); });
  }
  if (at < 0) return;
  // The label's own element, p - 1, in double: it is the difference of near numbers once it is learnt.
  const double squashed = softcap > 0 ? std::tanh(static_cast<double>(label_logit) / softcap) : 0.0;
  const double z = softcap > 0 ? softcap * squashed : label_logit;
  logits[at] = static_cast<float>(std::expm1(z - lse) * (1 - squashed * squashed) * dloss * scale);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon {
namespace {

HWY_EXPORT(take_logits);
HWY_EXPORT(take_weights);
HWY_EXPORT(take_gradient);

struct Layout {
  int64_t rows_bytes, gathered_bytes, logits_bytes, state_bytes, gemm_bytes;
};

// Blocking is by size, so a shorter last chunk may need another workspace than a whole one.
int64_t most_gemm_bytes(const Type& hidden, const Type& weight, GemmUnit unit, int threads) {
  const int64_t size = hidden.shape[1], vocab = weight.shape[0];
  const auto both = [&](int64_t rows, int64_t columns) {
    GemmSizes sizes{.m = rows, .n = columns, .k = size, .b_dtype = weight.dtype, .b_transposed = true};
    sizes.unit = unit;
    const int64_t logits = gemm_workspace_bytes(sizes, threads);
    sizes.b_transposed = false;
    sizes.n = size;
    sizes.k = columns;
    const int64_t hidden_gradient = gemm_workspace_bytes(sizes, threads);
    sizes.b_dtype = hidden.dtype;
    sizes.m = columns;
    sizes.k = rows;
    const int64_t weight_gradient = gemm_workspace_bytes(sizes, threads);
    return std::max({logits, hidden_gradient, weight_gradient});
  };
  int64_t bytes = 0;
  const int64_t last = vocab % kChunkVocab;
  for (int64_t rows = 1; rows <= std::min(hidden.shape[0], kChunkRows); ++rows) {
    bytes = std::max(bytes, both(rows, std::min(vocab, kChunkVocab)));
    if (last != 0) bytes = std::max(bytes, both(rows, last));
  }
  return round_up(bytes, kArenaAlignment);
}

Layout layout(const Type& hidden, const Type& weight, int64_t row_bytes, GemmUnit unit, int threads) {
  const int64_t rows = std::min(hidden.shape[0], kChunkRows);
  const int64_t vocab = std::min(weight.shape[0], kChunkVocab);
  Layout out;
  out.rows_bytes = round_up(hidden.shape[0] * 4, kArenaAlignment);
  out.gathered_bytes = round_up(*dtype_bytes(hidden.dtype, rows * hidden.shape[1]), kArenaAlignment);
  out.logits_bytes = round_up(rows * vocab * 4, kArenaAlignment);
  out.state_bytes = round_up(rows * row_bytes, kArenaAlignment);
  out.gemm_bytes = most_gemm_bytes(hidden, weight, unit, threads);
  return out;
}

}  // namespace

bool serves_cross_entropy(const OpSite& site, const DeviceFacts& facts, GemmUnit unit) {
  return has_gemm_unit(unit, site.inputs[0].dtype, facts) && is_vector_dtype(site.inputs[0].dtype) &&
         (site.outputs[0].dtype == DType::f32 || site.outputs[0].dtype == DType::bf16);
}

int64_t cross_entropy_workspace_bytes(const OpSite& site, const DeviceFacts& facts, int64_t extra_row_bytes,
                                      GemmUnit unit) {
  const Layout parts =
      layout(site.inputs[0], site.inputs[1], kCrossEntropyStateBytes + extra_row_bytes, unit, facts.threads);
  return parts.rows_bytes + parts.gathered_bytes + parts.logits_bytes + parts.state_bytes + parts.gemm_bytes;
}

CrossEntropy::CrossEntropy(const KernelCall& kernel_call, GemmUnit gemm_unit)
    : call(kernel_call),
      unit(gemm_unit),
      tokens(call.inputs[0].type.shape[0]),
      hidden_size(call.inputs[0].type.shape[1]),
      vocab(call.inputs[1].type.shape[0]),
      logit_scale(static_cast<float>(call.attrs->real("logit_scale"))),
      softcap(static_cast<float>(call.attrs->real("softcap"))) {
  const Layout parts = layout(call.inputs[0].type, call.inputs[1].type, 0, unit, call.threads->size());
  std::byte* at = call.workspace.data();
  rows = {reinterpret_cast<int32_t*>(at), static_cast<size_t>(tokens)};
  gathered = at += parts.rows_bytes;
  logits = reinterpret_cast<float*>(at += parts.gathered_bytes);
  at += parts.logits_bytes;
  gemm_workspace = {at, static_cast<size_t>(parts.gemm_bytes)};
  state = at + parts.gemm_bytes;
  const int32_t* labels = input_as<int32_t>(call, 2);
  for (int64_t t = 0; t < tokens; ++t) {
    if (labels[t] < 0) continue;
    CHECK(labels[t] < vocab, "a label is outside the vocabulary");
    rows[static_cast<size_t>(trained++)] = static_cast<int32_t>(t);
  }
  rows = rows.first(static_cast<size_t>(trained));
}

int32_t CrossEntropy::label(int64_t trained_row) const {
  return input_as<int32_t>(call, 2)[rows[static_cast<size_t>(trained_row)]];
}

void CrossEntropy::gather(int64_t begin, int64_t end) {
  const TensorView& hidden = call.inputs[0];
  const int64_t bytes = *dtype_bytes(hidden.type.dtype, hidden_size);
  call.threads->parallel_for(end - begin, 16, [&](Range range) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      const std::byte* from = hidden.data + rows[static_cast<size_t>(begin + i)] * bytes;
      std::memcpy(gathered + i * bytes, from, static_cast<size_t>(bytes));
    }
  });
}

GemmMatrix CrossEntropy::weight_rows(int64_t vocab_begin) const {
  const TensorView& weight = call.inputs[1];
  const int64_t row_bytes = *dtype_bytes(weight.type.dtype, hidden_size);
  return {weight.data + vocab_begin * row_bytes, weight.type.dtype, hidden_size};
}

void CrossEntropy::compute_logits(int64_t row_count, int64_t vocab_begin, int64_t vocab_end) {
  Gemm g;
  g.unit = unit;
  g.m = row_count;
  g.n = vocab_end - vocab_begin;
  g.k = hidden_size;
  g.a = {gathered, call.inputs[0].type.dtype, hidden_size};
  g.b = weight_rows(vocab_begin);
  g.b.transposed = true;
  g.alpha = logit_scale;
  g.out = reinterpret_cast<std::byte*>(logits);
  g.out_stride = g.n;
  gemm(g, gemm_workspace, *call.threads);
}

void CrossEntropy::compute_logit_gradients(int64_t begin, int64_t row_count, int64_t vocab_begin,
                                           int64_t vocab_end) {
  compute_logits(row_count, vocab_begin, vocab_end);
  const float *lse = input_as<float>(call, 3), *dloss = input_as<float>(call, 4);
  const int64_t count = vocab_end - vocab_begin;
  call.threads->parallel_for(row_count, 1, [&](Range range) {
    for (int64_t i = range.begin; i < range.end; ++i) {
      const int32_t token = rows[static_cast<size_t>(begin + i)];
      HWY_DYNAMIC_DISPATCH(take_gradient)
      (logits + i * count, count, vocab_begin, label(begin + i), softcap, logit_scale, lse[token],
       dloss[token]);
    }
  });
}

void add_logits(float* logits, int64_t count, int64_t first, int32_t label, float softcap,
                RunningSoftmax& state) {
  HWY_DYNAMIC_DISPATCH(take_logits)(logits, count, first, label, softcap, state);
}

float logits_to_weights(float* logits, int64_t count, int64_t first, int32_t label, RunningSoftmax& state) {
  return HWY_DYNAMIC_DISPATCH(take_weights)(logits, count, first, label, state);
}

}  // namespace tenon
#endif
