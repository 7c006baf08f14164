// attention on Hopper's tensor cores, the algorithm of flash_attention.cu: a block holds 128 queries of a
// head, a warpgroup 64 of them, and goes over the keys that they see in tiles of 128.
#include "backend/cuda/flash_softmax.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/warpgroup.h"

namespace tenon::cuda {
namespace {

constexpr int kQueries = 128, kKeys = 128;  // of a block, of a tile
constexpr int kBlockThreads = 256;

template <int kDim>
constexpr size_t kSharedBytes =
    kTileAlignment + SwizzledTile<kQueries, kDim>::kBytes + 4 * SwizzledTile<kKeys, kDim>::kBytes;

template <int kDim>
__global__ void __launch_bounds__(kBlockThreads, 1) warpgroup_attention(Forward f) {
#if TENON_HAS_WARPGROUP_PRODUCTS
  TENON_DYNAMIC_SHARED(uint16_t, shared);
  using KeyTile = SwizzledTile<kKeys, kDim>;
  const SwizzledTile<kQueries, kDim> queries{first_tile_place(shared)};
  uint16_t* const stages = queries.halves + queries.kHalves;
  const auto key_tile = [&](int stage) { return KeyTile{stages + 2 * stage * KeyTile::kHalves}; };
  const auto value_tile = [&](int stage) { return KeyTile{stages + (2 * stage + 1) * KeyTile::kHalves}; };
  const LanePlace place = LanePlace::mine();
  const int head = static_cast<int>(blockIdx.x), kv = head / (f.heads / f.kv_heads);
  const int first = longest_first() * kQueries;
  const int mine = static_cast<int>(threadIdx.x) / kGroupThreads * kGroupRows;
  const HeadRows q = head_rows(f.q, f.heads, head, f.dim, f.tokens);
  const HeadRows k = head_rows(f.k, f.kv_heads, kv, f.dim, f.tokens);
  const HeadRows v = head_rows(f.v, f.kv_heads, kv, f.dim, f.tokens);
  const int last = first + kQueries < f.tokens ? first + kQueries : f.tokens;
  const int first_tile = first_key(f.rule, f.sequence_begin, first) / kKeys * kKeys;
  const int last_begin = first_key(f.rule, f.sequence_begin, last - 1);
  int row[2], begin[2];
  for (int half = 0; half < 2; ++half) {
    row[half] = first + place.row(half);
    begin[half] = row[half] < f.tokens ? first_key(f.rule, f.sequence_begin, row[half]) : row[half];
  }
  load_swizzled<kBlockThreads>(queries, q, first);
  load_swizzled<kBlockThreads>(key_tile(0), k, first_tile);
  load_swizzled<kBlockThreads>(value_tile(0), v, first_tile);
  commit_copies();
  wait_for_copies<0>();
  publish_tiles();
  __syncthreads();
  Running running;
  Block<kDim> sum;
  sum.clear();
  int stage = 0;
  for (int key = first_tile; key < last; key += kKeys) {
    if (key + kKeys < last) {
      load_swizzled<kBlockThreads>(key_tile(1 - stage), k, key + kKeys);
      load_swizzled<kBlockThreads>(value_tile(1 - stage), v, key + kKeys);
    }
    commit_copies();
    Block<kKeys> s;
    begin_products();
    multiply_all(s, queries, mine, key_tile(stage));
    end_products();
    wait_for_products<0>();
    settle(s);
    score_block(s, f.rule);
    if (key + kKeys - 1 > first + mine || key < last_begin) hide_unseen(s, key, place.t, row, begin);
    add_weights(s, running, sum);
    const LeftOperands<kKeys, kDim> weights(s);
    begin_products();
    weights.multiply(sum, value_tile(stage));
    end_products();
    wait_for_products<0>();
    settle(sum);
    wait_for_copies<0>();
    publish_tiles();
    __syncthreads();
    stage = 1 - stage;
  }
  store_block(sum, f.out, q, head, first, place, 1 / running.total[0], 1 / running.total[1]);
  store_lse(f, running, row, head, place.t);
#else
  stop();
#endif
}

void run(const KernelCall& call) {
  const Forward f = forward_of(call);
  with_tile_columns(f.dim, [&](auto columns) {
    constexpr int kDim = decltype(columns)::value;
    launch(call, warpgroup_attention<kDim>,
           dim3(static_cast<unsigned>(f.heads), blocks_for(f.tokens, kQueries)), kBlockThreads,
           kSharedBytes<kDim>, f);
  });
}

constexpr KernelDef kKernels[] = {{.op = "attention",
                                   .name = "attention_warpgroup",
                                   .serves = serves_warpgroups,
                                   .cost = [](const OpSite&, const DeviceFacts&) { return 0.4; },
                                   .run = run}};

}  // namespace

std::span<const KernelDef> warpgroup_attention_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
