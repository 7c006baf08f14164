// paged_attention in bf16 for tokens that are decoded, a few at a time: the keys of a token are shared out
// among kSplits blocks for each head of keys, so that one stream fills the device, and a key is read once for
// the query heads that share it, by half a warp. A second kernel joins the blocks' sums. Who has which key
// depends on a token's own keys alone.
#include "backend/cuda/attention_keys.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"

namespace tenon::cuda {
namespace {

constexpr int kSplits = 8;
constexpr int kTeam = kWarp / 2;           // lanes of a key, kVector elements each
constexpr int kTeams = kThreads / kTeam;   // of a block
constexpr int kTurn = kSplits * kTeams;    // keys that all teams take together
constexpr int kColumns = kTeam * kVector;  // the most of a head
constexpr int kAhead = 2;                  // keys of a team whose loads are on their way together

// Blocks' sums of values, [tokens, heads, kSplits, kColumns], then the largest score and the sum of weights
// of each: [tokens, heads, kSplits, 2].
struct Parts {
  float *sums, *weights;
};

struct Decoding {
  Tensor q, k, v, out;
  PagedKeys keys;
  ScoreRule rule;
  int heads, kv_heads, dim;
  Parts parts;

  __device__ int group() const { return heads / kv_heads; }
};

__device__ inline void load_column(const Tensor& t, int64_t row, int dim, int column, float (&out)[kVector]) {
  if (column < dim) return load_vector(t, row * dim + column, out);
#pragma unroll
  for (int e = 0; e < kVector; ++e) out[e] = 0;
}

__device__ inline float team_sum(float value) {
#pragma unroll
  for (int offset = kTeam / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(kWholeWarp, value, offset);
  return value;
}

// The running softmax of a lane's columns of one head.
struct LaneSum {
  float largest = -INFINITY, total = 0, sum[kVector] = {};

  __device__ void add(float score, const float (&value)[kVector]) {
    const float next = fmaxf(largest, score), kept = expf(largest - next), weight = expf(score - next);
    total = total * kept + weight;
#pragma unroll
    for (int e = 0; e < kVector; ++e) sum[e] = sum[e] * kept + weight * value[e];
    largest = next;
  }
};

// Joins the sums of a block's teams, one head after the other, and writes them as the block's part.
template <int kHeads>
__device__ void join_teams(const Decoding& d, const LaneSum (&mine)[kHeads], int64_t t, int first_head,
                           int end_head) {
  __shared__ float sums[kTeams][kColumns], largest[kTeams], total[kTeams];
  const int team = static_cast<int>(threadIdx.x) / kTeam, lane = static_cast<int>(threadIdx.x) % kTeam;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (first_head + h >= end_head) return;
    if (lane == 0) {
      largest[team] = mine[h].largest;
      total[team] = mine[h].total;
    }
#pragma unroll
    for (int e = 0; e < kVector; ++e) sums[team][lane * kVector + e] = mine[h].sum[e];
    __syncthreads();
    if (threadIdx.x < kColumns) {
      float most = -INFINITY, weights = 0, sum = 0;
      for (int i = 0; i < kTeams; ++i) most = fmaxf(most, largest[i]);
      for (int i = 0; i < kTeams; ++i) {
        if (total[i] == 0) continue;
        const float kept = expf(largest[i] - most);
        weights += total[i] * kept;
        sum += sums[i][threadIdx.x] * kept;
      }
      const int64_t part = (t * d.heads + first_head + h) * kSplits + blockIdx.x;
      d.parts.sums[part * kColumns + threadIdx.x] = sum;
      if (threadIdx.x == 0) {
        d.parts.weights[2 * part] = most;
        d.parts.weights[2 * part + 1] = weights;
      }
    }
    __syncthreads();
  }
}

// Block (split, kHeads heads of queries that share one of keys, token).
template <int kHeads>
__global__ void __launch_bounds__(kThreads, 2) attend_split(Decoding d) {
  const int64_t t = blockIdx.z;
  if (!d.keys.has(t)) return;
  const int blocks_of_group = (d.group() + kHeads - 1) / kHeads;
  const int kv = static_cast<int>(blockIdx.y) / blocks_of_group;
  const int first_head = kv * d.group() + static_cast<int>(blockIdx.y) % blocks_of_group * kHeads;
  const int end_head = (kv + 1) * d.group();
  const int team = static_cast<int>(threadIdx.x) / kTeam;
  const int column = static_cast<int>(threadIdx.x) % kTeam * kVector;
  float query[kHeads][kVector];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const int head = first_head + h < end_head ? first_head + h : first_head;
    load_column(d.q, t * d.heads + head, d.dim, column, query[h]);
  }
  LaneSum running[kHeads];
  const int64_t last = d.keys.position(t), first = d.rule.first_seen(last) + blockIdx.x * kTeams;
  for (int64_t turn = first; turn <= last; turn += kAhead * kTurn) {
    float key[kAhead][kVector], value[kAhead][kVector];
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      const int64_t at = turn + a * kTurn + team;
      const int64_t row = d.keys.row(t, at <= last ? at : last) * d.kv_heads + kv;
      load_column(d.k, row, d.dim, column, key[a]);
      load_column(d.v, row, d.dim, column, value[a]);
    }
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      const int64_t at = turn + a * kTurn + team;
#pragma unroll
      for (int h = 0; h < kHeads; ++h) {
        float product = 0, slope;
#pragma unroll
        for (int e = 0; e < kVector; ++e) product += query[h][e] * key[a][e];
        const float score = d.rule.score(team_sum(product), first_head + h, at, &slope);
        if (at <= last) running[h].add(score, value[a]);
      }
    }
  }
  join_teams(d, running, t, first_head, end_head);
}

// A block for each token and head, a thread for each column.
__global__ void __launch_bounds__(kColumns) join_splits(Decoding d) {
  const int64_t item = blockIdx.x;
  const int column = static_cast<int>(threadIdx.x);
  if (column >= d.dim) return;
  float sum = 0, weights = 0;
  if (d.keys.has(item / d.heads)) {
    const float *sums = d.parts.sums + item * kSplits * kColumns,
                *part = d.parts.weights + item * kSplits * 2;
    float most = -INFINITY;
    for (int i = 0; i < kSplits; ++i) most = fmaxf(most, part[2 * i]);
    for (int i = 0; i < kSplits; ++i) {
      if (part[2 * i + 1] == 0) continue;
      const float kept = expf(part[2 * i] - most);
      weights += part[2 * i + 1] * kept;
      sum += sums[i * kColumns + column] * kept;
    }
  }
  store(d.out, item * d.dim + column, weights > 0 ? sum / weights : 0.0f);
}

int64_t part_count(const Shape& q) {
  return q[0] * q[1] * kSplits;
}

template <int kHeads>
void launch_heads(const KernelCall& call, const Decoding& d, unsigned tokens) {
  const unsigned heads =
      static_cast<unsigned>(d.kv_heads * ceil_div(int64_t{d.heads / d.kv_heads}, int64_t{kHeads}));
  launch(call, attend_split<kHeads>, dim3(kSplits, heads, tokens), kThreads, 0, d);
}

void run(const KernelCall& call) {
  const Shape &q = call.inputs[0].type.shape, &k = call.inputs[1].type.shape;
  auto* const sums = reinterpret_cast<float*>(call.workspace.data());
  const Decoding d{.q = input(call, 0),
                   .k = input(call, 1),
                   .v = input(call, 2),
                   .out = output(call, 0),
                   .keys = paged_keys(call, 3),
                   .rule = score_rule(call, 6),
                   .heads = static_cast<int>(q[1]),
                   .kv_heads = static_cast<int>(k[2]),
                   .dim = static_cast<int>(q[2]),
                   .parts = {sums, sums + part_count(q) * kColumns}};
  const auto tokens = static_cast<unsigned>(q[0]);
  const int group = d.heads / d.kv_heads;
  if (group == 1) {
    launch_heads<1>(call, d, tokens);
  } else if (group == 2) {
    launch_heads<2>(call, d, tokens);
  } else {
    launch_heads<4>(call, d, tokens);
  }
  launch(call, join_splits, static_cast<unsigned>(q[0] * q[1]), kColumns, 0, d);
}

// A launch has at most that many tokens on its third axis.
constexpr int64_t kMostTokens = 65535;

bool serves(const OpSite& site, const DeviceFacts& facts) {
  const Shape &q = site.inputs[0].shape, &v = site.inputs[2].shape;
  return facts.kind == DeviceKind::cuda && site.inputs[0].dtype == DType::bf16 &&
         site.inputs[1].dtype == DType::bf16 && q[2] == v[3] && q[2] % kVector == 0 && q[2] <= kColumns &&
         q[0] <= kMostTokens;
}

constexpr KernelDef kKernels[] = {
    {.op = "paged_attention",
     .name = "paged_attention_split",
     .serves = serves,
     .workspace_bytes =
         [](const OpSite& site, const DeviceFacts&) {
           return part_count(site.inputs[0].shape) * (kColumns + 2) * static_cast<int64_t>(sizeof(float));
         },
     .cost = [](const OpSite&, const DeviceFacts&) { return 0.7; },
     .run = run},
};

}  // namespace

std::span<const KernelDef> split_paged_attention_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
