// The state of linear attention in registers: a warp holds kColumns columns of a head's state [n, p], a lane
// every 32nd row of them. What the rows of a column add up to is a sum over the warp.
#pragma once

#include "backend/cuda/launch.h"

namespace tenon::cuda {

struct LinearSizes {
  int64_t tokens, key_heads, heads, n, p, decays;  // decays: 1 or n
  float scale;
  bool delta;

  __device__ int64_t key_row(int64_t t, int64_t head) const {
    return (t * key_heads + head / (heads / key_heads)) * n;
  }
};

inline LinearSizes linear_sizes(const KernelCall& call) {
  const Shape &q = call.inputs[0].type.shape, &v = call.inputs[2].type.shape;
  return {q[0],
          q[1],
          v[1],
          q[2],
          v[2],
          call.inputs[3].type.shape[2],
          static_cast<float>(call.attrs->real("scale")),
          call.attrs->flag("delta")};
}

struct LinearOperands {
  Tensor q, k, v;
  const float *log_decay, *beta;  // beta: null where there is none
};

// kRows rows of a lane by kColumns columns of its warp.
template <int kRows, int kColumns>
struct StateTile {
  float value[kRows][kColumns];

  __device__ static int64_t row(int r) { return static_cast<int64_t>(threadIdx.x % kWarp) + r * kWarp; }

  __device__ void clear() {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) value[r][c] = 0;
    }
  }
  // Of a matrix [n, p]; zeros outside of it.
  __device__ void load_from(const float* from, const LinearSizes& s, int64_t first) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const bool inside = row(r) < s.n && first + c < s.p;
        value[r][c] = inside ? from[row(r) * s.p + first + c] : 0.0f;
      }
    }
  }
  __device__ void store_to(float* to, const LinearSizes& s, int64_t first) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        if (row(r) < s.n && first + c < s.p) to[row(r) * s.p + first + c] = value[r][c];
      }
    }
  }
  // Of each column, the sum of its elements times x of their rows; every lane has it.
  __device__ void column_dots(const float (&x)[kRows], float (&out)[kColumns]) const {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      float part = 0;
#pragma unroll
      for (int r = 0; r < kRows; ++r) part += x[r] * value[r][c];
      out[c] = warp_sum(part);
    }
  }
  __device__ void add_product(const float (&x)[kRows], const float (&y)[kColumns]) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) value[r][c] += x[r] * y[c];
    }
  }
  __device__ void multiply_rows(const float (&x)[kRows]) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) value[r][c] *= x[r];
    }
  }
};

// A token's operands as a tile needs them.
template <int kRows, int kColumns>
struct TokenOperands {
  float q[kRows], k[kRows], decay[kRows], v[kColumns], beta;

  __device__ static TokenOperands of(const LinearOperands& o, const LinearSizes& s, int64_t t, int64_t head,
                                     int64_t first) {
    using State = StateTile<kRows, kColumns>;
    TokenOperands out;
    const int64_t key = s.key_row(t, head), at = t * s.heads + head;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int64_t i = State::row(r);
      const bool inside = i < s.n;
      out.q[r] = inside ? load(o.q, key + i) : 0.0f;
      out.k[r] = inside ? load(o.k, key + i) : 0.0f;
      out.decay[r] = inside ? expf(o.log_decay[at * s.decays + (s.decays == 1 ? 0 : i)]) : 0.0f;
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) out.v[c] = first + c < s.p ? load(o.v, at * s.p + first + c) : 0.0f;
    out.beta = o.beta == nullptr ? 1.0f : o.beta[at];
    return out;
  }
  // By how much v misses what the state has along k: v - S^T k, or v itself.
  __device__ void misses(const StateTile<kRows, kColumns>& decayed, const LinearSizes& s,
                         float (&out)[kColumns]) const {
    float known[kColumns] = {};
    if (s.delta) decayed.column_dots(k, known);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) out[c] = v[c] - known[c];
  }
  __device__ void write_to(StateTile<kRows, kColumns>& state, const LinearSizes& s) const {
    float u[kColumns];
    misses(state, s, u);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) u[c] *= beta;
    state.add_product(k, u);
  }
};

inline constexpr int64_t kMostStateRows = 256;

// Calls body with the rows that a lane holds of a state with n rows, as a constant.
template <typename Body>
void with_state_rows(int64_t n, Body body) {
  if (n <= kWarp) return body(std::integral_constant<int, 1>{});
  if (n <= 2 * kWarp) return body(std::integral_constant<int, 2>{});
  if (n <= 4 * kWarp) return body(std::integral_constant<int, 4>{});
  body(std::integral_constant<int, 8>{});
}

}  // namespace tenon::cuda
