// attention_grad on tensor cores, without atomics: one kernel holds 64 queries and goes over their keys for
// dq, one holds 64 keys and goes over the queries that see them, and over the heads that share them, for dk
// and dv. Both compute the weights again from lse (Dao et al. 2022, algorithm 4). Weights and score gradients
// are rounded to bf16 before they multiply.
#include "backend/cuda/flash.h"
#include "backend/cuda/kernel_list.h"

namespace tenon::cuda {
namespace {

struct Backward {
  Tensor q, k, v, out, dout, dq, dk, dv;
  const int32_t* sequence_begin;
  const float* lse;
  float* delta;  // [tokens, heads]: dout · out, workspace
  ScoreRule rule;
  Heads h;
  int64_t tokens;
};

__global__ void output_products(Backward b, int64_t items) {
  const int64_t item = thread_in_grid() / kWarp;
  if (item >= items) return;
  const int64_t at = item * b.h.v_head_dim;
  float total = 0;
  for (int64_t i = threadIdx.x % kWarp; i < b.h.v_head_dim; i += kWarp)
    total += load(b.dout, at + i) * load(b.out, at + i);
  total = warp_sum(total);
  if (threadIdx.x % kWarp == 0) b.delta[item] = total;
}

// The weight of a pair from its product, and the factor that turns dp - delta into the gradient of the
// product.
struct PairWeight {
  float weight, factor;
};
__device__ inline PairWeight pair_weight(const ScoreRule& rule, float product, float lse, bool seen) {
  float slope;
  const float score = rule.score(product, 0, 0, &slope);
  const float weight = seen ? exp2f((score - lse) * kLog2E) : 0.0f;
  return {weight, weight * slope * rule.scale};
}

template <int kDim>
__global__ void __launch_bounds__(kFlashThreads) query_gradients(Backward b) {
  TENON_DYNAMIC_SHARED(uint16_t, shared);
  const Tile<kDim> k_tile{shared}, v_tile{shared + kFlashRows * Tile<kDim>::kStride};
  const LanePlace lane = LanePlace::mine();
  const int64_t head = blockIdx.y, kv = b.h.kv_of(head);
  const int64_t first = static_cast<int64_t>(gridDim.x - 1 - blockIdx.x) * kFlashRows;
  const HeadRows q = head_rows(b.q, b.h.heads, head, b.h.head_dim, b.tokens);
  const HeadRows dout = head_rows(b.dout, b.h.heads, head, b.h.head_dim, b.tokens);
  const HeadRows k = head_rows(b.k, b.h.kv_heads, kv, b.h.head_dim, b.tokens);
  const HeadRows v = head_rows(b.v, b.h.kv_heads, kv, b.h.head_dim, b.tokens);
  int64_t row[2], begin[2];
  float lse[2] = {0, 0}, delta[2] = {0, 0};
  for (int half = 0; half < 2; ++half) {
    row[half] = first + lane.row(half);
    begin[half] = row[half] + 1;
    if (row[half] >= b.tokens) continue;
    begin[half] = first_key(b.rule, b.sequence_begin, row[half]);
    lse[half] = b.lse[row[half] * b.h.heads + head];
    delta[half] = b.delta[row[half] * b.h.heads + head];
  }
  uint32_t query[kDim / 16][4], output[kDim / 16][4];
#pragma unroll
  for (int c = 0; c < kDim / 16; ++c) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      query[c][i] = q.pair(row[i % 2], 16 * c + 2 * lane.t + i / 2 * 8);
      output[c][i] = dout.pair(row[i % 2], 16 * c + 2 * lane.t + i / 2 * 8);
    }
  }
  Block<kDim> sum;
  sum.clear();
  const int64_t last = first + kFlashRows < b.tokens ? first + kFlashRows : b.tokens;
  for (int64_t key = first_key(b.rule, b.sequence_begin, first) / kFlashRows * kFlashRows; key < last;
       key += kFlashRows) {
    __syncthreads();
    load_tile(k_tile, k, key);
    load_tile(v_tile, v, key);
    __syncthreads();
    Block<kFlashRows> s, dp;
    s.clear();
    dp.clear();
#pragma unroll
    for (int c = 0; c < kDim / 16; ++c) {
      multiply_rows(s, query[c], k_tile, c, lane);
      multiply_rows(dp, output[c], v_tile, c, lane);
    }
#pragma unroll
    for (int n = 0; n < kFlashRows / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64_t at = key + 8 * n + 2 * lane.t + i % 2;
        const bool seen = at >= begin[i / 2] && at <= row[i / 2];
        const PairWeight w = pair_weight(b.rule, s.value[n][i], lse[i / 2], seen);
        s.value[n][i] = w.factor * (dp.value[n][i] - delta[i / 2]);
      }
    }
    multiply_tile(sum, s, k_tile);
  }
  store_block(sum, reinterpret_cast<uint16_t*>(b.dq.data) + head * b.h.head_dim, b.h.heads * b.h.head_dim,
              static_cast<int>(b.h.head_dim), first, b.tokens, lane, 1.0f, 1.0f);
}

// The first token from `from` on that sees nothing before `key`; what tokens see begins in rising order.
__device__ inline int64_t end_of_queries(const Backward& b, int64_t from, int64_t key) {
  int64_t low = from, high = b.tokens;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
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
  float lse[kFlashRows], delta[kFlashRows];
  int64_t begin[kFlashRows];
};

template <int kDim>
__global__ void __launch_bounds__(kFlashThreads) key_gradients(Backward b) {
  TENON_DYNAMIC_SHARED(uint16_t, shared);
  constexpr int kTileHalves = kFlashRows * Tile<kDim>::kStride;
  const Tile<kDim> k_tile{shared}, v_tile{shared + kTileHalves}, q_tile{shared + 2 * kTileHalves},
      dout_tile{shared + 3 * kTileHalves};
  __shared__ QueryFacts facts;
  const LanePlace lane = LanePlace::mine();
  const int64_t kv = blockIdx.y, group = b.h.heads / b.h.kv_heads;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kFlashRows;
  const int64_t row[2] = {first + lane.row(0), first + lane.row(1)};
  load_tile(k_tile, head_rows(b.k, b.h.kv_heads, kv, b.h.head_dim, b.tokens), first);
  load_tile(v_tile, head_rows(b.v, b.h.kv_heads, kv, b.h.head_dim, b.tokens), first);
  const int64_t last_key = first + kFlashRows < b.tokens ? first + kFlashRows : b.tokens;
  const int64_t end = end_of_queries(b, first, last_key);
  Block<kDim> key_sum, value_sum;
  key_sum.clear();
  value_sum.clear();
  for (int64_t head = kv * group; head < (kv + 1) * group; ++head) {
    const HeadRows q = head_rows(b.q, b.h.heads, head, b.h.head_dim, b.tokens);
    const HeadRows dout = head_rows(b.dout, b.h.heads, head, b.h.head_dim, b.tokens);
    for (int64_t query = first; query < end; query += kFlashRows) {
      __syncthreads();
      load_tile(q_tile, q, query);
      load_tile(dout_tile, dout, query);
      for (int i = static_cast<int>(threadIdx.x); i < kFlashRows; i += kFlashThreads) {
        const bool exists = query + i < b.tokens;
        facts.lse[i] = exists ? b.lse[(query + i) * b.h.heads + head] : 0.0f;
        facts.delta[i] = exists ? b.delta[(query + i) * b.h.heads + head] : 0.0f;
        facts.begin[i] = exists ? first_key(b.rule, b.sequence_begin, query + i) : b.tokens;
      }
      __syncthreads();
      Block<kFlashRows> s, dp;
      s.clear();
      dp.clear();
#pragma unroll
      for (int c = 0; c < kDim / 16; ++c) {
        uint32_t a[4];
        left_of_tile(k_tile, lane, c, a);
        multiply_rows(s, a, q_tile, c, lane);
        left_of_tile(v_tile, lane, c, a);
        multiply_rows(dp, a, dout_tile, c, lane);
      }
#pragma unroll
      for (int n = 0; n < kFlashRows / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int column = 8 * n + 2 * lane.t + i % 2;
          const bool seen = facts.begin[column] <= row[i / 2] && row[i / 2] <= query + column;
          const PairWeight w = pair_weight(b.rule, s.value[n][i], facts.lse[column], seen);
          s.value[n][i] = w.weight;
          dp.value[n][i] = w.factor * (dp.value[n][i] - facts.delta[column]);
        }
      }
      multiply_tile(value_sum, s, dout_tile);
      multiply_tile(key_sum, dp, q_tile);
    }
  }
  const int64_t stride = b.h.kv_heads * b.h.head_dim;
  const int dim = static_cast<int>(b.h.head_dim);
  store_block(key_sum, reinterpret_cast<uint16_t*>(b.dk.data) + kv * dim, stride, dim, first, b.tokens, lane,
              1.0f, 1.0f);
  store_block(value_sum, reinterpret_cast<uint16_t*>(b.dv.data) + kv * dim, stride, dim, first, b.tokens,
              lane, 1.0f, 1.0f);
}

void run(const KernelCall& call) {
  const Shape &q = call.inputs[0].type.shape, &v = call.inputs[2].type.shape;
  const Backward b{.q = input(call, 0),
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
                   .h = {q[1], v[1], q[2], v[2]},
                   .tokens = q[0]};
  const int64_t items = q[0] * q[1];
  launch(call, output_products, blocks_for(items, kThreads / kWarp), kThreads, 0, b, items);
  const unsigned tiles = blocks_for(q[0], kFlashRows);
  with_tile_columns(q[2], [&](auto columns) {
    constexpr int kDim = decltype(columns)::value;
    launch(call, query_gradients<kDim>, dim3(tiles, static_cast<unsigned>(q[1])), kFlashThreads,
           2 * Tile<kDim>::kBytes, b);
    launch(call, key_gradients<kDim>, dim3(tiles, static_cast<unsigned>(v[1])), kFlashThreads,
           4 * Tile<kDim>::kBytes, b);
  });
}

constexpr KernelDef kKernels[] = {
    {.op = "attention_grad",
     .name = "attention_grad_flash",
     .serves = serves_flash,
     .workspace_bytes = [](const OpSite& site, const DeviceFacts&) { return site.inputs[5].bytes(); },
     .cost = [](const OpSite&, const DeviceFacts&) { return 0.5; },
     .run = run}};

}  // namespace

std::span<const KernelDef> flash_attention_grad_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
