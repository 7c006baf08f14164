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
__device__ inline void score_block(Block<kFlashRows>& s, const ScoreRule& rule) {
  const float factor = rule.scale * kLog2E;
  if (rule.softcap > 0) {
#pragma unroll
    for (int n = 0; n < kFlashRows / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        s.value[n][i] = rule.softcap * kLog2E * tanhf(rule.scale * s.value[n][i] / rule.softcap);
    }
    return;
  }
#pragma unroll
  for (int n = 0; n < kFlashRows / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) s.value[n][i] *= factor;
  }
}

// Minus infinity where a query does not see a key of the tile that begins at `first`.
__device__ inline void hide_unseen(Block<kFlashRows>& s, int first, int t, const int (&row)[2],
                                   const int (&begin)[2]) {
#pragma unroll
  for (int n = 0; n < kFlashRows / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = first + 8 * n + 2 * t + i % 2;
      if (key < begin[i / 2] || key > row[i / 2]) s.value[n][i] = -INFINITY;
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
    const float kept = exp2f(running.largest[half] - base);
    float total = 0;
#pragma unroll
    for (int n = 0; n < kFlashRows / 8; ++n) {
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

template <int kDim>
__global__ void __launch_bounds__(kFlashThreads) flash_attention(Forward f) {
  TENON_DYNAMIC_SHARED(uint16_t, shared);
  using KeyTile = Tile<kDim>;
  const LanePlace place = LanePlace::mine();
  const int head = static_cast<int>(blockIdx.y), kv = head / (f.heads / f.kv_heads);
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kFlashRows;  // long rows first
  const HeadRows q = head_rows(f.q, f.heads, head, f.dim, f.tokens);
  const HeadRows k = head_rows(f.k, f.kv_heads, kv, f.dim, f.tokens);
  const HeadRows v = head_rows(f.v, f.kv_heads, kv, f.dim, f.tokens);
  const int last = first + kFlashRows < f.tokens ? first + kFlashRows : f.tokens;
  const int first_tile = first_key(f.rule, f.sequence_begin, first) / kFlashRows * kFlashRows;
  const int last_begin = first_key(f.rule, f.sequence_begin, last - 1);
  int row[2], begin[2];
  for (int half = 0; half < 2; ++half) {
    row[half] = first + place.row(half);
    begin[half] = row[half] < f.tokens ? first_key(f.rule, f.sequence_begin, row[half]) : row[half];
  }
  // Two stages of a key and a value tile: one is read while the next travels. The queries pass through the
  // second.
  const auto key_tile = [&](int stage) { return KeyTile{shared + 2 * stage * KeyTile::kHalves}; };
  const auto value_tile = [&](int stage) { return KeyTile{shared + (2 * stage + 1) * KeyTile::kHalves}; };
  load_tile(key_tile(1), q, first);
  load_tile(key_tile(0), k, first_tile);
  load_tile(value_tile(0), v, first_tile);
  commit_copies();
  wait_for_copies<0>();
  __syncthreads();
  uint32_t query[kDim / 16][4];
#pragma unroll
  for (int c = 0; c < kDim / 16; ++c) key_tile(1).left(place, c, query[c]);
  __syncthreads();
  Running running;
  Block<kDim> sum;
  sum.clear();
  int stage = 0;
  for (int key = first_tile; key < last; key += kFlashRows) {
    if (key + kFlashRows < last) {
      load_tile(key_tile(1 - stage), k, key + kFlashRows);
      load_tile(value_tile(1 - stage), v, key + kFlashRows);
    }
    commit_copies();
    Block<kFlashRows> s;
    s.clear();
#pragma unroll
    for (int c = 0; c < kDim / 16; ++c) multiply_rows(s, query[c], key_tile(stage), c, place);
    score_block(s, f.rule);
    if (key + kFlashRows - 1 > first || key < last_begin) hide_unseen(s, key, place.t, row, begin);
    add_weights(s, running, sum);
    multiply_tile(sum, s, value_tile(stage), place);
    wait_for_copies<0>();
    __syncthreads();
    stage = 1 - stage;
  }
  store_block(sum, f.out, q, head, first, place, 1 / running.total[0], 1 / running.total[1]);
  for (int half = 0; half < 2; ++half) {
    if (place.t == 0 && row[half] < f.tokens) {
      f.lse[static_cast<int64_t>(row[half]) * f.heads + head] =
          (running.largest[half] + log2f(running.total[half])) / kLog2E;
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
                  .heads = static_cast<int>(q[1]),
                  .kv_heads = static_cast<int>(v[1]),
                  .dim = static_cast<int>(q[2]),
                  .tokens = static_cast<int>(q[0])};
  with_tile_columns(q[2], [&](auto columns) {
    constexpr int kDim = decltype(columns)::value;
    launch(call, flash_attention<kDim>, dim3(blocks_for(q[0], kFlashRows), static_cast<unsigned>(q[1])),
           kFlashThreads, 4 * Tile<kDim>::kBytes, f);
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
