// The running softmax of the attention kernels on tensor cores: scores of 16 queries of a warp and a tile of
// keys, in units of log 2.
#pragma once

#include "backend/cuda/flash.h"

namespace tenon::cuda {

struct Forward {
  Tensor q, k, v, out;
  const int32_t* sequence_begin;
  float* lse;
  ScoreRule rule;
  int heads, kv_heads, dim, tokens;
};

// The running softmax of a lane's two rows, scores in units of log 2.
struct Running {
  float largest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
};

__device__ inline float quad_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, 1));
  return fmaxf(value, __shfl_xor_sync(kWholeWarp, value, 2));
}
__device__ inline float quad_sum(float value) {
  value += __shfl_xor_sync(kWholeWarp, value, 1);
  return value + __shfl_xor_sync(kWholeWarp, value, 2);
}

// Products to scores.
template <int kKeys>
__device__ inline void score_block(Block<kKeys>& s, const ScoreRule& rule) {
  const float factor = rule.scale * kLog2E;
  if (rule.softcap > 0) {
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        s.value[n][i] = rule.softcap * kLog2E * tanhf(rule.scale * s.value[n][i] / rule.softcap);
    }
    return;
  }
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) s.value[n][i] *= factor;
  }
}

// Minus infinity where a query does not see a key of the tile that begins at `first`.
template <int kKeys>
__device__ inline void hide_unseen(Block<kKeys>& s, int first, int t, const int (&row)[2],
                                   const int (&begin)[2]) {
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = first + 8 * n + 2 * t + i % 2;
      if (key < begin[i / 2] || key > row[i / 2]) s.value[n][i] = -INFINITY;
    }
  }
}

// Turns scores into weights relative to the new largest score and rescales what was summed before.
template <int kKeys, int kDim>
__device__ inline void add_weights(Block<kKeys>& s, Running& running, Block<kDim>& sum) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = running.largest[half];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      largest = fmaxf(largest, fmaxf(s.value[n][2 * half], s.value[n][2 * half + 1]));
    }
    largest = quad_max(largest);
    const float base = largest == -INFINITY ? 0 : largest;  // a row that has seen nothing yet
    const float kept = exp2f(running.largest[half] - base);
    float total = 0;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        s.value[n][i] = exp2f(s.value[n][i] - base);
        total += s.value[n][i];
      }
    }
    running.total[half] = running.total[half] * kept + quad_sum(total);
    running.largest[half] = largest;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      sum.value[n][2 * half] *= kept;
      sum.value[n][2 * half + 1] *= kept;
    }
  }
}

inline Forward forward_of(const KernelCall& call) {
  const Shape &q = call.inputs[0].type.shape, &v = call.inputs[2].type.shape;
  return {.q = input(call, 0),
          .k = input(call, 1),
          .v = input(call, 2),
          .out = output(call, 0),
          .sequence_begin = input_as<int32_t>(call, 3),
          .lse = output_as<float>(call, 1),
          .rule = score_rule(call, 4),
          .heads = static_cast<int>(q[1]),
          .kv_heads = static_cast<int>(v[1]),
          .dim = static_cast<int>(q[2]),
          .tokens = static_cast<int>(q[0])};
}

// Writes the log of the softmax's sum for a lane's two rows.
__device__ inline void store_lse(const Forward& f, const Running& running, const int (&row)[2], int head,
                                 int t) {
  for (int half = 0; half < 2; ++half) {
    if (t == 0 && row[half] < f.tokens) {
      f.lse[static_cast<int64_t>(row[half]) * f.heads + head] =
          (running.largest[half] + log2f(running.total[half])) / kLog2E;
    }
  }
}

}  // namespace tenon::cuda
