// What the backward passes of attention on tensor cores share: weights and score gradients of a tile from
// lse, which queries see a block of keys, and what each needs of a query.
#pragma once

#include "backend/cuda/flash.h"

namespace tenon::cuda {

struct Backward {
  Tensor q, k, v, out, dout, dq, dk, dv;
  const int32_t* sequence_begin;
  const float* lse;
  float* delta;  // [tokens, heads]: dout · out, workspace
  ScoreRule rule;
  int heads, kv_heads, dim, tokens;
};

// A warp a row of a head.
static __global__ void output_products(Backward b, int64_t items) {
  const int64_t item = thread_in_grid() / kWarp;
  if (item >= items) return;
  const int64_t at = item * b.dim;
  float total = 0;
  for (int i = static_cast<int>(threadIdx.x) % kWarp * kVector; i < b.dim; i += kWarp * kVector) {
    float x[kVector], y[kVector];
    load_vector(b.dout, at + i, x);
    load_vector(b.out, at + i, y);
    for (int e = 0; e < kVector; ++e) total += x[e] * y[e];
  }
  total = warp_sum(total);
  if (threadIdx.x % kWarp == 0) b.delta[item] = total;
}

// In place: products to weights, and dp to the gradients of the products. `lse2` (in units of log 2) and
// `delta` give the query of an element.
template <int kColumns, typename Lse, typename Delta>
__device__ inline void weights_and_gradients(Block<kColumns>& s, Block<kColumns>& dp, const ScoreRule& rule,
                                             Lse lse2, Delta delta) {
  if (rule.softcap > 0) {
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float t = tanhf(rule.scale * s.value[n][i] / rule.softcap);
        s.value[n][i] = exp2f(rule.softcap * kLog2E * t - lse2(n, i));
        dp.value[n][i] = s.value[n][i] * rule.scale * (1 - t * t) * (dp.value[n][i] - delta(n, i));
      }
    }
    return;
  }
  const float factor = rule.scale * kLog2E;
#pragma unroll
  for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      s.value[n][i] = exp2f(s.value[n][i] * factor - lse2(n, i));
      dp.value[n][i] = s.value[n][i] * rule.scale * (dp.value[n][i] - delta(n, i));
    }
  }
}

// Zeros where a query does not see a key.
template <int kColumns, typename Seen>
__device__ inline void hide_unseen(Block<kColumns>& s, Block<kColumns>& dp, Seen seen) {
#pragma unroll
  for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (seen(n, i)) continue;
      s.value[n][i] = 0;
      dp.value[n][i] = 0;
    }
  }
}

// The first token from `from` on that sees nothing before `key`; what tokens see begins in rising order.
__device__ inline int end_of_queries(const Backward& b, int from, int key) {
  int low = from, high = b.tokens;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (first_key(b.rule, b.sequence_begin, middle) < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// What a block of keys needs of each query of a tile.
struct QueryFacts {
  float lse2[kFlashRows], delta[kFlashRows];
  int begin[kFlashRows];
};

__device__ inline void load_facts(QueryFacts& facts, const Backward& b, int head, int first) {
  for (int i = static_cast<int>(threadIdx.x); i < kFlashRows; i += static_cast<int>(blockDim.x)) {
    const bool exists = first + i < b.tokens;
    const int64_t at = static_cast<int64_t>(first + i) * b.heads + head;
    facts.lse2[i] = exists ? b.lse[at] * kLog2E : 0.0f;
    facts.delta[i] = exists ? b.delta[at] : 0.0f;
    facts.begin[i] = exists ? first_key(b.rule, b.sequence_begin, first + i) : b.tokens;  // sees nothing
  }
}

inline Backward backward_of(const KernelCall& call) {
  const Shape &q = call.inputs[0].type.shape, &v = call.inputs[2].type.shape;
  return {.q = input(call, 0),
          .k = input(call, 1),
          .v = input(call, 2),
          .out = input(call, 4),
          .dout = input(call, 6),
          .dq = output(call, 0),
          .dk = output(call, 1),
          .dv = output(call, 2),
          .sequence_begin = input_as<int32_t>(call, 3),
          .lse = input_as<float>(call, 5),
          .delta = reinterpret_cast<float*>(call.workspace.data()),
          .rule = score_rule(call, 7),
          .heads = static_cast<int>(q[1]),
          .kv_heads = static_cast<int>(v[1]),
          .dim = static_cast<int>(q[2]),
          .tokens = static_cast<int>(q[0])};
}

inline void launch_output_products(const KernelCall& call, const Backward& b) {
  const int64_t items = static_cast<int64_t>(b.tokens) * b.heads;
  launch(call, output_products, blocks_for(items, kThreads / kWarp), kThreads, 0, b, items);
}

}  // namespace tenon::cuda
