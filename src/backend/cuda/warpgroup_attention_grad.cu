// attention_grad on Hopper's tensor cores, the algorithm of flash_attention_grad.cu: one kernel holds 128
// queries and goes over their keys for dq, one holds 128 keys and goes over the queries that see them for dk
// and dv; a warpgroup has 64 of the rows.
#include "backend/cuda/flash_gradients.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/warpgroup.h"

namespace tenon::cuda {
namespace {

constexpr int kHeld = 128;  // rows of a block
constexpr int kBlockThreads = 256;
constexpr int kPassing = kFlashRows;  // rows of a tile that goes by

// Two tiles that are held, two stages of two that go by, and facts of the latter.
template <int kDim>
constexpr size_t kSharedBytes = kTileAlignment + 2 * SwizzledTile<kHeld, kDim>::kBytes +
                                4 * SwizzledTile<kPassing, kDim>::kBytes + 2 * sizeof(QueryFacts);

#if TENON_HAS_WARPGROUP_PRODUCTS

template <int kDim>
struct SharedTiles {
  uint16_t* base;
  __device__ SwizzledTile<kHeld, kDim> held(int which) const {
    return {base + which * SwizzledTile<kHeld, kDim>::kHalves};
  }
  __device__ SwizzledTile<kPassing, kDim> passing(int stage, int which) const {
    return {base + 2 * SwizzledTile<kHeld, kDim>::kHalves +
            (2 * stage + which) * SwizzledTile<kPassing, kDim>::kHalves};
  }
  __device__ QueryFacts& facts(int stage) const {
    return reinterpret_cast<QueryFacts*>(passing(2, 0).halves)[stage];
  }
};

// Products of the held rows with a passing tile: of the first of each, and of the second.
template <int kDim>
__device__ inline void multiply_pairs(const SharedTiles<kDim>& tiles, int stage, int mine, Block<kPassing>& s,
                                      Block<kPassing>& dp) {
  begin_products();
  multiply_all(s, tiles.held(0), mine, tiles.passing(stage, 0));
  multiply_all(dp, tiles.held(1), mine, tiles.passing(stage, 1));
  end_products();
  wait_for_products<0>();
  settle(s);
  settle(dp);
}

#endif

template <int kDim>
__global__ void __launch_bounds__(kBlockThreads, 1) warpgroup_query_gradients(Backward b) {
#if TENON_HAS_WARPGROUP_PRODUCTS
  TENON_DYNAMIC_SHARED(uint16_t, shared);
  const SharedTiles<kDim> tiles{first_tile_place(shared)};  // q and dout are held, k and v go by
  const LanePlace place = LanePlace::mine();
  const int head = static_cast<int>(blockIdx.x), kv = head / (b.heads / b.kv_heads);
  const int first = longest_first() * kHeld;
  const int mine = static_cast<int>(threadIdx.x) / kGroupThreads * kGroupRows;
  const HeadRows q = head_rows(b.q, b.heads, head, b.dim, b.tokens);
  const HeadRows k = head_rows(b.k, b.kv_heads, kv, b.dim, b.tokens);
  const HeadRows v = head_rows(b.v, b.kv_heads, kv, b.dim, b.tokens);
  const int last = first + kHeld < b.tokens ? first + kHeld : b.tokens;
  const int first_tile = first_key(b.rule, b.sequence_begin, first) / kPassing * kPassing;
  const int last_begin = first_key(b.rule, b.sequence_begin, last - 1);
  int row[2], begin[2];
  float lse2[2] = {0, 0}, delta[2] = {0, 0};
  for (int half = 0; half < 2; ++half) {
    row[half] = first + place.row(half);
    begin[half] = row[half];
    if (row[half] >= b.tokens) continue;
    begin[half] = first_key(b.rule, b.sequence_begin, row[half]);
    lse2[half] = b.lse[static_cast<int64_t>(row[half]) * b.heads + head] * kLog2E;
    delta[half] = b.delta[static_cast<int64_t>(row[half]) * b.heads + head];
  }
  load_swizzled<kBlockThreads>(tiles.held(0), q, first);
  load_swizzled<kBlockThreads>(tiles.held(1), head_rows(b.dout, b.heads, head, b.dim, b.tokens), first);
  load_swizzled<kBlockThreads>(tiles.passing(0, 0), k, first_tile);
  load_swizzled<kBlockThreads>(tiles.passing(0, 1), v, first_tile);
  commit_copies();
  wait_for_copies<0>();
  publish_tiles();
  __syncthreads();
  Block<kDim> sum;
  sum.clear();
  int stage = 0;
  for (int key = first_tile; key < last; key += kPassing) {
    if (key + kPassing < last) {
      load_swizzled<kBlockThreads>(tiles.passing(1 - stage, 0), k, key + kPassing);
      load_swizzled<kBlockThreads>(tiles.passing(1 - stage, 1), v, key + kPassing);
    }
    commit_copies();
    Block<kPassing> s, dp;
    multiply_pairs(tiles, stage, mine, s, dp);
    weights_and_gradients(
        s, dp, b.rule, [&](int, int i) { return lse2[i / 2]; }, [&](int, int i) { return delta[i / 2]; });
    if (key + kPassing - 1 > first + mine || key < last_begin) {
      hide_unseen(s, dp, [&](int n, int i) {
        const int at = key + 8 * n + 2 * place.t + i % 2;
        return at >= begin[i / 2] && at <= row[i / 2];
      });
    }
    const LeftOperands<kPassing, kDim> gradients(dp);
    begin_products();
    gradients.multiply(sum, tiles.passing(stage, 0));
    end_products();
    wait_for_products<0>();
    settle(sum);
    wait_for_copies<0>();
    publish_tiles();
    __syncthreads();
    stage = 1 - stage;
  }
  store_block(sum, b.dq, q, head, first, place, 1.0f, 1.0f);
#else
  stop();
#endif
}

template <int kDim>
__global__ void __launch_bounds__(kBlockThreads, 1) warpgroup_key_gradients(Backward b) {
#if TENON_HAS_WARPGROUP_PRODUCTS
  TENON_DYNAMIC_SHARED(uint16_t, shared);
  const SharedTiles<kDim> tiles{first_tile_place(shared)};  // k and v are held, q and dout go by
  const LanePlace place = LanePlace::mine();
  const int kv = static_cast<int>(blockIdx.x), group = b.heads / b.kv_heads;
  const int first = static_cast<int>(blockIdx.y) * kHeld;
  const int mine = static_cast<int>(threadIdx.x) / kGroupThreads * kGroupRows;
  const int row[2] = {first + place.row(0), first + place.row(1)};
  const HeadRows k = head_rows(b.k, b.kv_heads, kv, b.dim, b.tokens);
  const HeadRows v = head_rows(b.v, b.kv_heads, kv, b.dim, b.tokens);
  const int last_key = first + kHeld < b.tokens ? first + kHeld : b.tokens;
  const int passing = (end_of_queries(b, first, last_key) - first + kPassing - 1) / kPassing;
  // Turn by turn: the query tiles of one head after the other.
  const auto load_turn = [&](int turn, int stage) {
    const int head = kv * group + turn / passing, query = first + turn % passing * kPassing;
    load_swizzled<kBlockThreads>(tiles.passing(stage, 0), head_rows(b.q, b.heads, head, b.dim, b.tokens),
                                 query);
    load_swizzled<kBlockThreads>(tiles.passing(stage, 1), head_rows(b.dout, b.heads, head, b.dim, b.tokens),
                                 query);
    load_facts(tiles.facts(stage), b, head, query);
  };
  load_swizzled<kBlockThreads>(tiles.held(0), k, first);
  load_swizzled<kBlockThreads>(tiles.held(1), v, first);
  load_turn(0, 0);
  commit_copies();
  wait_for_copies<0>();
  publish_tiles();
  __syncthreads();
  Block<kDim> key_sum, value_sum;
  key_sum.clear();
  value_sum.clear();
  const int turns = passing * group;
  for (int turn = 0; turn < turns; ++turn) {
    const int stage = turn % 2, query = first + turn % passing * kPassing;
    if (turn + 1 < turns) load_turn(turn + 1, 1 - stage);
    commit_copies();
    const QueryFacts& of = tiles.facts(stage);
    Block<kPassing> s, dp;
    multiply_pairs(tiles, stage, mine, s, dp);
    weights_and_gradients(
        s, dp, b.rule, [&](int n, int i) { return of.lse2[8 * n + 2 * place.t + i % 2]; },
        [&](int n, int i) { return of.delta[8 * n + 2 * place.t + i % 2]; });
    if (query < first + mine + kGroupRows - 1 || of.begin[kPassing - 1] > first + mine) {
      hide_unseen(s, dp, [&](int n, int i) {
        const int column = 8 * n + 2 * place.t + i % 2;
        return of.begin[column] <= row[i / 2] && row[i / 2] <= query + column;
      });
    }
    const LeftOperands<kPassing, kDim> weights(s);
    begin_products();
    weights.multiply(value_sum, tiles.passing(stage, 1));
    end_products();
    const LeftOperands<kPassing, kDim> gradients(dp);
    begin_products();
    gradients.multiply(key_sum, tiles.passing(stage, 0));
    end_products();
    wait_for_products<0>();
    settle(value_sum);
    settle(key_sum);
    wait_for_copies<0>();
    publish_tiles();
    __syncthreads();
  }
  store_block(key_sum, b.dk, k, kv, first, place, 1.0f, 1.0f);
  store_block(value_sum, b.dv, v, kv, first, place, 1.0f, 1.0f);
#else
  stop();
#endif
}

void run(const KernelCall& call) {
  const Backward b = backward_of(call);
  launch_output_products(call, b);
  const unsigned blocks = blocks_for(b.tokens, kHeld);
  with_tile_columns(b.dim, [&](auto columns) {
    constexpr int kDim = decltype(columns)::value;
    launch(call, warpgroup_query_gradients<kDim>, dim3(static_cast<unsigned>(b.heads), blocks), kBlockThreads,
           kSharedBytes<kDim>, b);
    launch(call, warpgroup_key_gradients<kDim>, dim3(static_cast<unsigned>(b.kv_heads), blocks),
           kBlockThreads, kSharedBytes<kDim>, b);
  });
}

constexpr KernelDef kKernels[] = {
    {.op = "attention_grad",
     .name = "attention_grad_warpgroup",
     .serves = serves_warpgroups,
     .workspace_bytes = [](const OpSite& site, const DeviceFacts&) { return site.inputs[5].bytes(); },
     .cost = [](const OpSite&, const DeviceFacts&) { return 0.4; },
     .run = run}};

}  // namespace

std::span<const KernelDef> warpgroup_attention_grad_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
