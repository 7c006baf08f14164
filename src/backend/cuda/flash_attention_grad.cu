// attention_grad on tensor cores, without atomics: one kernel holds 64 queries and goes over their keys for
// dq, one holds 64 keys and goes over the queries that see them, and over the heads that share them, for dk
// and dv. Both compute the weights again from lse (Dao et al. 2022, algorithm 4). Weights and score gradients
// are rounded to bf16 before they multiply.
#include "backend/cuda/flash_gradients.h"
#include "backend/cuda/kernel_list.h"

namespace tenon::cuda {
namespace {

template <int kDim>
__global__ void __launch_bounds__(kFlashThreads) query_gradients(Backward b) {
  TENON_DYNAMIC_SHARED(uint16_t, shared);
  const auto tile = [&](int index) { return Tile<kDim>{shared + index * Tile<kDim>::kHalves}; };
  const LanePlace place = LanePlace::mine();
  const int head = static_cast<int>(blockIdx.x), kv = head / (b.heads / b.kv_heads);
  const int first = longest_first() * kFlashRows;
  const HeadRows q = head_rows(b.q, b.heads, head, b.dim, b.tokens);
  const HeadRows dout = head_rows(b.dout, b.heads, head, b.dim, b.tokens);
  const HeadRows k = head_rows(b.k, b.kv_heads, kv, b.dim, b.tokens);
  const HeadRows v = head_rows(b.v, b.kv_heads, kv, b.dim, b.tokens);
  const int last = first + kFlashRows < b.tokens ? first + kFlashRows : b.tokens;
  const int first_tile = first_key(b.rule, b.sequence_begin, first) / kFlashRows * kFlashRows;
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
  // Tiles 0 and 1: q and dout; then two stages of k and v.
  load_tile(tile(0), q, first);
  load_tile(tile(1), dout, first);
  load_tile(tile(2), k, first_tile);
  load_tile(tile(3), v, first_tile);
  commit_copies();
  wait_for_copies<0>();
  __syncthreads();
  Block<kDim> sum;
  sum.clear();
  int stage = 0;
  for (int key = first_tile; key < last; key += kFlashRows) {
    if (key + kFlashRows < last) {
      load_tile(tile(4 - 2 * stage), k, key + kFlashRows);
      load_tile(tile(5 - 2 * stage), v, key + kFlashRows);
    }
    commit_copies();
    const Tile<kDim> k_tile = tile(2 + 2 * stage), v_tile = tile(3 + 2 * stage);
    Block<kFlashRows> s, dp;
    s.clear();
    dp.clear();
#pragma unroll
    for (int c = 0; c < kDim / 16; ++c) {
      uint32_t a[4];
      tile(0).left(place, c, a);
      multiply_rows(s, a, k_tile, c, place);
      tile(1).left(place, c, a);
      multiply_rows(dp, a, v_tile, c, place);
    }
    weights_and_gradients(
        s, dp, b.rule, [&](int, int i) { return lse2[i / 2]; }, [&](int, int i) { return delta[i / 2]; });
    if (key + kFlashRows - 1 > first || key < last_begin) {
      hide_unseen(s, dp, [&](int n, int i) {
        const int at = key + 8 * n + 2 * place.t + i % 2;
        return at >= begin[i / 2] && at <= row[i / 2];
      });
    }
    multiply_tile(sum, dp, k_tile, place);
    wait_for_copies<0>();
    __syncthreads();
    stage = 1 - stage;
  }
  store_block(sum, b.dq, q, head, first, place, 1.0f, 1.0f);
}

template <int kDim>
__global__ void __launch_bounds__(kFlashThreads) key_gradients(Backward b) {
  TENON_DYNAMIC_SHARED(uint16_t, shared);
  __shared__ QueryFacts facts[2];
  const auto tile = [&](int index) { return Tile<kDim>{shared + index * Tile<kDim>::kHalves}; };
  const LanePlace place = LanePlace::mine();
  const int kv = static_cast<int>(blockIdx.x), group = b.heads / b.kv_heads;
  const int first = static_cast<int>(blockIdx.y) * kFlashRows;
  const int row[2] = {first + place.row(0), first + place.row(1)};
  const HeadRows k = head_rows(b.k, b.kv_heads, kv, b.dim, b.tokens);
  const HeadRows v = head_rows(b.v, b.kv_heads, kv, b.dim, b.tokens);
  const int last_key = first + kFlashRows < b.tokens ? first + kFlashRows : b.tokens;
  const int tiles = (end_of_queries(b, first, last_key) - first + kFlashRows - 1) / kFlashRows;
  // Turn by turn: the query tiles of one head after the other. Tiles 0 and 1: k and v; then two stages of q
  // and dout.
  const auto load_turn = [&](int turn, int stage) {
    const int head = kv * group + turn / tiles, query = first + turn % tiles * kFlashRows;
    load_tile(tile(2 + 2 * stage), head_rows(b.q, b.heads, head, b.dim, b.tokens), query);
    load_tile(tile(3 + 2 * stage), head_rows(b.dout, b.heads, head, b.dim, b.tokens), query);
    load_facts(facts[stage], b, head, query);
  };
  load_tile(tile(0), k, first);
  load_tile(tile(1), v, first);
  load_turn(0, 0);
  commit_copies();
  wait_for_copies<0>();
  __syncthreads();
  Block<kDim> key_sum, value_sum;
  key_sum.clear();
  value_sum.clear();
  const int turns = tiles * group;
  for (int turn = 0; turn < turns; ++turn) {
    const int stage = turn % 2, query = first + turn % tiles * kFlashRows;
    if (turn + 1 < turns) load_turn(turn + 1, 1 - stage);
    commit_copies();
    const Tile<kDim> q_tile = tile(2 + 2 * stage), dout_tile = tile(3 + 2 * stage);
    const QueryFacts& of = facts[stage];
    Block<kFlashRows> s, dp;
    s.clear();
    dp.clear();
#pragma unroll
    for (int c = 0; c < kDim / 16; ++c) {
      uint32_t a[4];
      tile(0).left(place, c, a);
      multiply_rows(s, a, q_tile, c, place);
      tile(1).left(place, c, a);
      multiply_rows(dp, a, dout_tile, c, place);
    }
    weights_and_gradients(
        s, dp, b.rule, [&](int n, int i) { return of.lse2[8 * n + 2 * place.t + i % 2]; },
        [&](int n, int i) { return of.delta[8 * n + 2 * place.t + i % 2]; });
    if (query < first + kFlashRows - 1 || of.begin[kFlashRows - 1] > first) {
      hide_unseen(s, dp, [&](int n, int i) {
        const int column = 8 * n + 2 * place.t + i % 2;
        return of.begin[column] <= row[i / 2] && row[i / 2] <= query + column;
      });
    }
    multiply_tile(value_sum, s, dout_tile, place);
    multiply_tile(key_sum, dp, q_tile, place);
    wait_for_copies<0>();
    __syncthreads();
  }
  store_block(key_sum, b.dk, k, kv, first, place, 1.0f, 1.0f);
  store_block(value_sum, b.dv, v, kv, first, place, 1.0f, 1.0f);
}

void run(const KernelCall& call) {
  const Backward b = backward_of(call);
  launch_output_products(call, b);
  const unsigned tiles = blocks_for(b.tokens, kFlashRows);
  with_tile_columns(b.dim, [&](auto columns) {
    constexpr int kDim = decltype(columns)::value;
    launch(call, query_gradients<kDim>, dim3(static_cast<unsigned>(b.heads), tiles), kFlashThreads,
           6 * Tile<kDim>::kBytes, b);
    launch(call, key_gradients<kDim>, dim3(static_cast<unsigned>(b.kv_heads), tiles), kFlashThreads,
           6 * Tile<kDim>::kBytes, b);
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
