// attention on tensor cores (Dao et al. 2022, 2023): a block holds 64 queries of a head, a warp 16 of them,
// and goes over the keys that they see in tiles of 64, with a running softmax. Weights are rounded to bf16
// before they multiply v. Tiles that no query of the block sees are not read.
#include "backend/cuda/flash.h"
#include "backend/cuda/kernel_list.h"

namespace tenon::cuda {
namespace {

struct Forward {
  Tensor q, k, v, out;
  const int32_t* sequence_begin;
  float* lse;
  ScoreRule rule;
  Heads h;
  int64_t tokens;
};

// The running softmax of a lane's two rows.
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

// Scores of products, minus infinity where a query does not see a key; rows as tokens, `first` the tile's
// first key.
__device__ inline void score_block(Block<kFlashRows>& s, const ScoreRule& rule, int64_t first, int t,
                                   const int64_t (&row)[2], const int64_t (&begin)[2]) {
#pragma unroll
  for (int n = 0; n < kFlashRows / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t key = first + 8 * n + 2 * t + i % 2;
      float slope;
      const float score = rule.score(s.value[n][i], 0, 0, &slope);
      s.value[n][i] = key >= begin[i / 2] && key <= row[i / 2] ? score : -INFINITY;
    }
  }
}

// Turns scores into weights relative to the new largest score and rescales what was summed before.
template <int kDim>
__device__ inline void add_weights(Block<kFlashRows>& s, Running& running, Block<kDim>& sum) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = running.largest[half];
#pragma unroll
    for (int n = 0; n < kFlashRows / 8; ++n) {
      largest = fmaxf(largest, fmaxf(s.value[n][2 * half], s.value[n][2 * half + 1]));
    }
    largest = quad_max(largest);
    const float base = largest == -INFINITY ? 0 : largest;  // a row that has seen nothing yet
    const float kept = exp2f((running.largest[half] - base) * kLog2E);
    float total = 0;
#pragma unroll
    for (int n = 0; n < kFlashRows / 8; ++n) {
#pragma unroll
      for (int i = 2 * half; i < 2 * half + 2; ++i) {
        s.value[n][i] = exp2f((s.value[n][i] - base) * kLog2E);
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

template <int kDim>
__global__ void __launch_bounds__(kFlashThreads) flash_attention(Forward f) {
  TENON_DYNAMIC_SHARED(uint16_t, shared);
  const Tile<kDim> k_tile{shared}, v_tile{shared + kFlashRows * Tile<kDim>::kStride};
  const LanePlace lane = LanePlace::mine();
  const int64_t head = blockIdx.y, kv = f.h.kv_of(head);
  const int64_t first = static_cast<int64_t>(gridDim.x - 1 - blockIdx.x) * kFlashRows;  // long rows first
  const HeadRows q = head_rows(f.q, f.h.heads, head, f.h.head_dim, f.tokens);
  const HeadRows k = head_rows(f.k, f.h.kv_heads, kv, f.h.head_dim, f.tokens);
  const HeadRows v = head_rows(f.v, f.h.kv_heads, kv, f.h.head_dim, f.tokens);
  const int64_t row[2] = {first + lane.row(0), first + lane.row(1)};
  int64_t begin[2];
  for (int half = 0; half < 2; ++half) {
    begin[half] = row[half] < f.tokens ? first_key(f.rule, f.sequence_begin, row[half]) : row[half] + 1;
  }
  uint32_t query[kDim / 16][4];
#pragma unroll
  for (int c = 0; c < kDim / 16; ++c) {
#pragma unroll
    for (int i = 0; i < 4; ++i) query[c][i] = q.pair(row[i % 2], 16 * c + 2 * lane.t + i / 2 * 8);
  }
  Running running;
  Block<kDim> sum;
  sum.clear();
  const int64_t last = first + kFlashRows < f.tokens ? first + kFlashRows : f.tokens;
  for (int64_t key = first_key(f.rule, f.sequence_begin, first) / kFlashRows * kFlashRows; key < last;
       key += kFlashRows) {
    __syncthreads();
    load_tile(k_tile, k, key);
    load_tile(v_tile, v, key);
    __syncthreads();
    Block<kFlashRows> s;
    s.clear();
#pragma unroll
    for (int c = 0; c < kDim / 16; ++c) multiply_rows(s, query[c], k_tile, c, lane);
    score_block(s, f.rule, key, lane.t, row, begin);
    add_weights(s, running, sum);
    multiply_tile(sum, s, v_tile);
  }
  store_block(sum, reinterpret_cast<uint16_t*>(f.out.data) + head * f.h.head_dim, f.h.heads * f.h.head_dim,
              static_cast<int>(f.h.head_dim), first, f.tokens, lane, 1 / running.total[0],
              1 / running.total[1]);
  for (int half = 0; half < 2; ++half) {
    if (lane.t == 0 && row[half] < f.tokens) {
      f.lse[row[half] * f.h.heads + head] = running.largest[half] + logf(running.total[half]);
    }
  }
}

void run(const KernelCall& call) {
  const Shape &q = call.inputs[0].type.shape, &v = call.inputs[2].type.shape;
  const Forward f{.q = input(call, 0),
                  .k = input(call, 1),
                  .v = input(call, 2),
                  .out = output(call, 0),
                  .sequence_begin = input_as<int32_t>(call, 3),
                  .lse = output_as<float>(call, 1),
                  .rule = score_rule(call, 4),
                  .h = {q[1], v[1], q[2], v[2]},
                  .tokens = q[0]};
  with_tile_columns(q[2], [&](auto columns) {
    constexpr int kDim = decltype(columns)::value;
    launch(call, flash_attention<kDim>, dim3(blocks_for(q[0], kFlashRows), static_cast<unsigned>(q[1])),
           kFlashThreads, 2 * Tile<kDim>::kBytes, f);
  });
}

constexpr KernelDef kKernels[] = {{.op = "attention",
                                   .name = "attention_flash",
                                   .serves = serves_flash,
                                   .cost = [](const OpSite&, const DeviceFacts&) { return 0.5; },
                                   .run = run}};

}  // namespace

std::span<const KernelDef> flash_attention_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
