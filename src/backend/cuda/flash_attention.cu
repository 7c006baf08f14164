// attention on tensor cores (Dao et al. 2022, 2023): a block holds 64 queries of a head, a warp 16 of them,
// and goes over the keys that they see in tiles of 64, with a running softmax. Weights are rounded to bf16
// before they multiply v. Tiles that no query of the block sees are not read.
#include "backend/cuda/flash_softmax.h"
#include "backend/cuda/kernel_list.h"

namespace tenon::cuda {
namespace {

template <int kDim>
__global__ void __launch_bounds__(kFlashThreads) flash_attention(Forward f) {
  TENON_DYNAMIC_SHARED(uint16_t, shared);
  using KeyTile = Tile<kDim>;
  const LanePlace place = LanePlace::mine();
  const int head = static_cast<int>(blockIdx.x), kv = head / (f.heads / f.kv_heads);
  const int first = longest_first() * kFlashRows;
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
  store_lse(f, running, row, head, place.t);
}

void run(const KernelCall& call) {
  const Forward f = forward_of(call);
  with_tile_columns(f.dim, [&](auto columns) {
    constexpr int kDim = decltype(columns)::value;
    launch(call, flash_attention<kDim>,
           dim3(static_cast<unsigned>(f.heads), blocks_for(f.tokens, kFlashRows)), kFlashThreads,
           4 * Tile<kDim>::kBytes, f);
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
