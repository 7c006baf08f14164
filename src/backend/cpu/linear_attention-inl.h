// Rows of a head's state in vectors, padded to whole vectors with zeros. Included once per Highway target.
#if defined(TENON_BACKEND_CPU_LINEAR_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_LINEAR_ATTENTION_INL_H_
#undef TENON_BACKEND_CPU_LINEAR_ATTENTION_INL_H_
#else
#define TENON_BACKEND_CPU_LINEAR_ATTENTION_INL_H_
#endif

#include <cmath>
#include <cstring>

#include "backend/cpu/convert-inl.h"
#include "backend/cpu/linear_attention_sizes.h"
#include "backend/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

// One token of one head, widened; p padded.
struct LinearToken {
  const float *q, *k, *v, *decay;  // decay: exp(log_decay), [n] or one for all
  int64_t decay_step;              // 0 or 1
  float beta;
};

HWY_INLINE float dot_rows(const float* a, const float* b, int64_t padded) {
  VF sum = hn::Zero(DF());
  for (int64_t j = 0; j < padded; j += kLanes) sum = hn::MulAdd(load(a + j), load(b + j), sum);
  return sum_of(sum);
}

// y += x * factor.
HWY_INLINE void add_row(float* y, const float* x, float factor, int64_t padded) {
  const VF f = hn::Set(DF(), factor);
  for (int64_t j = 0; j < padded; j += kLanes) store(hn::MulAdd(load(x + j), f, load(y + j)), y + j);
}

HWY_INLINE void clear_row(float* y, int64_t padded) {
  std::memset(y, 0, static_cast<size_t>(padded) * 4);
}

// What the state [n, padded p] gets of each key channel: beta * (v - state^T k), or beta * v; the state
// decayed.
HWY_INLINE void decay_and_miss(const LinearSizes& s, const LinearToken& t, float* state, float* update) {
  clear_row(update, s.padded);
  for (int64_t i = 0; i < s.n; ++i) {
    float* row = state + i * s.padded;
    const VF a = hn::Set(DF(), t.decay[i * t.decay_step]), k = hn::Set(DF(), t.k[i]);
    for (int64_t j = 0; j < s.padded; j += kLanes) {
      const VF kept = hn::Mul(load(row + j), a);
      store(kept, row + j);
      if (s.delta) store(hn::MulAdd(kept, k, load(update + j)), update + j);
    }
  }
  const VF beta = hn::Set(DF(), t.beta);
  for (int64_t j = 0; j < s.padded; j += kLanes)
    store(hn::Mul(beta, hn::Sub(load(t.v + j), load(update + j))), update + j);
}

// state += k update^T; out = scale * state^T q.
HWY_INLINE void update_and_read(const LinearSizes& s, const LinearToken& t, const float* update, float* state,
                                float* out) {
  clear_row(out, s.padded);
  for (int64_t i = 0; i < s.n; ++i) {
    float* row = state + i * s.padded;
    const VF k = hn::Set(DF(), t.k[i]), q = hn::Set(DF(), s.scale * t.q[i]);
    for (int64_t j = 0; j < s.padded; j += kLanes) {
      const VF now = hn::MulAdd(load(update + j), k, load(row + j));
      store(now, row + j);
      store(hn::MulAdd(now, q, load(out + j)), out + j);
    }
  }
}

// Reads a token of head h of the op's first four inputs and beta into scratch rows.
HWY_INLINE LinearToken read_token(const LinearSizes& s, std::span<const TensorView> in,
                                  const TensorView* beta, int64_t t, int64_t h, const LinearRows& rows) {
  const int64_t key = (t * s.key_heads + h / (s.heads / s.key_heads)) * s.n, head = t * s.heads + h;
  widen_row(in[0].type.dtype, in[0].data, key, s.n, rows.q);
  widen_row(in[1].type.dtype, in[1].data, key, s.n, rows.k);
  clear_row(rows.v, s.padded);
  widen_row(in[2].type.dtype, in[2].data, head * s.p, s.p, rows.v);
  const float* logs = reinterpret_cast<const float*>(in[3].data) + head * s.decays;
  for (int64_t i = 0; i < s.decays; ++i) rows.decay[i] = std::exp(logs[i]);
  const float b = beta ? reinterpret_cast<const float*>(beta->data)[head] : 1.0f;
  return {rows.q, rows.k, rows.v, rows.decay, s.decays == 1 ? 0 : 1, b};
}

HWY_INLINE void load_state(const LinearSizes& s, const float* from, float* state) {
  for (int64_t i = 0; i < s.n; ++i) {
    clear_row(state + i * s.padded, s.padded);
    std::memcpy(state + i * s.padded, from + i * s.p, static_cast<size_t>(s.p) * 4);
  }
}

HWY_INLINE void save_state(const LinearSizes& s, const float* state, float* to) {
  for (int64_t i = 0; i < s.n; ++i)
    std::memcpy(to + i * s.p, state + i * s.padded, static_cast<size_t>(s.p) * 4);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
