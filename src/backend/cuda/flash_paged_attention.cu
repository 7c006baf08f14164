// paged_attention on tensor cores, for prompts: a block holds 64 tokens of a head as in flash_attention.cu.
// Tokens that follow each other in one stream share its keys, tile by tile; tokens of another stream do not
// see them.
#include "backend/cuda/attention_keys.h"
#include "backend/cuda/flash_softmax.h"
#include "backend/cuda/kernel_list.h"

namespace tenon::cuda {
namespace {

struct PagedForward {
  Tensor q, k, v, out;
  PagedKeys keys;
  ScoreRule rule;
  int heads, kv_heads, dim, tokens;
};

// Tokens [begin, end) of a block, neighbours of one stream, and the keys [first, last) that they see.
struct Neighbours {
  int begin, end, first, last;
};

__device__ inline Neighbours neighbours_from(const PagedForward& f, int begin, int limit) {
  Neighbours run{begin, begin, 0, 0};
  for (; run.end < limit && f.keys.stream[run.end] == f.keys.stream[begin]; ++run.end) {
    if (!f.keys.has(run.end)) continue;
    const int64_t position = f.keys.position(run.end);
    const int seen = static_cast<int>(f.rule.first_seen(position)), past = static_cast<int>(position) + 1;
    run.first = run.end == begin || seen < run.first ? seen : run.first;
    run.last = past > run.last ? past : run.last;
  }
  run.first = run.first / kFlashRows * kFlashRows;
  return run;
}

// Starts to fill a key and a value tile with positions from `first` on of the stream of token `t`.
template <int kDim>
__device__ inline void load_pages(const Tile<kDim>& key_tile, const Tile<kDim>& value_tile,
                                  const PagedForward& f, const Neighbours& run, int kv, int first) {
  constexpr int kVectors = kDim / 8;
  const auto* keys = reinterpret_cast<const uint16_t*>(f.k.data);
  const auto* values = reinterpret_cast<const uint16_t*>(f.v.data);
  for (int i = static_cast<int>(threadIdx.x); i < kFlashRows * kVectors; i += kFlashThreads) {
    const int row = i / kVectors, column = i % kVectors * 8;
    const bool exists = first + row < run.last && column < f.dim;
    const int64_t slot = exists ? f.keys.row(run.begin, first + row) : 0;
    const int64_t at = exists ? (slot * f.kv_heads + kv) * f.dim + column : 0;
    copy_async(key_tile.at(row, column), keys + at, exists);
    copy_async(value_tile.at(row, column), values + at, exists);
  }
}

template <int kDim>
__global__ void __launch_bounds__(kFlashThreads) flash_paged_attention(PagedForward f) {
  TENON_DYNAMIC_SHARED(uint16_t, shared);
  using KeyTile = Tile<kDim>;
  const LanePlace place = LanePlace::mine();
  const int head = static_cast<int>(blockIdx.x), kv = head / (f.heads / f.kv_heads);
  const int first = longest_first() * kFlashRows;
  const int limit = first + kFlashRows < f.tokens ? first + kFlashRows : f.tokens;
  const HeadRows q = head_rows(f.q, f.heads, head, f.dim, f.tokens);
  const auto key_tile = [&](int stage) { return KeyTile{shared + 2 * stage * KeyTile::kHalves}; };
  const auto value_tile = [&](int stage) { return KeyTile{shared + (2 * stage + 1) * KeyTile::kHalves}; };
  load_tile(key_tile(0), q, first);
  commit_copies();
  wait_for_copies<0>();
  __syncthreads();
  uint32_t query[kDim / 16][4];
#pragma unroll
  for (int c = 0; c < kDim / 16; ++c) key_tile(0).left(place, c, query[c]);
  Running running;
  Block<kDim> sum;
  sum.clear();
  for (Neighbours run{first, first, 0, 0}; run.end < limit;) {
    run = neighbours_from(f, run.end, limit);
    if (run.last == 0) continue;
    // What a row sees of these keys; a row of another stream: nothing.
    int position[2], begin[2];
    for (int half = 0; half < 2; ++half) {
      const int token = first + place.row(half);
      const bool among = token >= run.begin && token < run.end;
      position[half] = among ? static_cast<int>(f.keys.position(token)) : -1;
      begin[half] = among ? static_cast<int>(f.rule.first_seen(position[half])) : 0;
    }
    __syncthreads();
    load_pages(key_tile(0), value_tile(0), f, run, kv, run.first);
    commit_copies();
    wait_for_copies<0>();
    __syncthreads();
    int stage = 0;
    for (int key = run.first; key < run.last; key += kFlashRows) {
      if (key + kFlashRows < run.last) {
        load_pages(key_tile(1 - stage), value_tile(1 - stage), f, run, kv, key + kFlashRows);
      }
      commit_copies();
      Block<kFlashRows> s;
      s.clear();
#pragma unroll
      for (int c = 0; c < kDim / 16; ++c) multiply_rows(s, query[c], key_tile(stage), c, place);
      score_block(s, f.rule);
      hide_unseen(s, key, place.t, position, begin);
      add_weights(s, running, sum);
      multiply_tile(sum, s, value_tile(stage), place);
      wait_for_copies<0>();
      __syncthreads();
      stage = 1 - stage;
    }
  }
  const float factor[2] = {running.total[0] > 0 ? 1 / running.total[0] : 0.0f,
                           running.total[1] > 0 ? 1 / running.total[1] : 0.0f};
  store_block(sum, f.out, q, head, first, place, factor[0], factor[1]);
}

void run(const KernelCall& call) {
  const Shape &q = call.inputs[0].type.shape, &k = call.inputs[1].type.shape;
  const PagedForward f{.q = input(call, 0),
                       .k = input(call, 1),
                       .v = input(call, 2),
                       .out = output(call, 0),
                       .keys = paged_keys(call, 3),
                       .rule = score_rule(call, 6),
                       .heads = static_cast<int>(q[1]),
                       .kv_heads = static_cast<int>(k[2]),
                       .dim = static_cast<int>(q[2]),
                       .tokens = static_cast<int>(q[0])};
  with_tile_columns(f.dim, [&](auto columns) {
    constexpr int kDim = decltype(columns)::value;
    launch(call, flash_paged_attention<kDim>,
           dim3(static_cast<unsigned>(f.heads), blocks_for(f.tokens, kFlashRows)), kFlashThreads,
           4 * Tile<kDim>::kBytes, f);
  });
}

bool serves(const OpSite& site, const DeviceFacts& facts) {
  const Shape &q = site.inputs[0].shape, &v = site.inputs[2].shape;
  return facts.kind == DeviceKind::cuda && facts.has("bf16") && site.inputs[0].dtype == DType::bf16 &&
         site.inputs[1].dtype == DType::bf16 && q[2] == v[3] && q[2] % 8 == 0 && q[2] <= 128;
}

// Tiles are for prompts. Where every stream has about one token, they would be empty but for a row.
double cost(const OpSite& site, const DeviceFacts&) {
  const int64_t tokens = site.inputs[0].shape[0], streams = site.inputs[3].shape[0];
  return tokens >= 32 && tokens > 4 * streams ? 0.5 : 2.0;
}

constexpr KernelDef kKernels[] = {
    {.op = "paged_attention", .name = "paged_attention_flash", .serves = serves, .cost = cost, .run = run}};

}  // namespace

std::span<const KernelDef> flash_paged_attention_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
