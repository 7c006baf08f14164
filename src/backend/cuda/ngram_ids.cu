// ngram_ids: a thread a token. ngram_ids_cached: a thread a stream, over the stream's tokens in order.
// lookup_ids.
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"

namespace tenon::cuda {
namespace {

constexpr size_t kMostMultipliers = 8, kMostSizes = 64;

struct Ngrams {
  uint64_t multiplier[kMostMultipliers], size[kMostSizes];
  int64_t multipliers, heads, rows_per_token, end;
};

// Tokens of a pack before token t, and those that a stream keeps before a position.
struct PackedTokens {
  const int32_t* ids;
  int64_t t;
  __device__ int64_t operator()(int64_t s) const { return ids[t - s]; }
};
struct KeptTokens {
  const int32_t* state;
  int64_t length, position, id;
  __device__ int64_t operator()(int64_t s) const { return s == 0 ? id : state[(position - s) % length]; }
};

// The rows of one token; token(s) is the one s before it, where there is one up to `known`.
template <typename Tokens>
__device__ void hash(const Ngrams& g, int64_t known, const Tokens& token, int32_t* rows) {
  uint64_t mixed = static_cast<uint64_t>(token(0)) * g.multiplier[0];
  bool ended = false;
  int64_t first_row = 0, head = 0;
  for (int64_t s = 1; s < g.multipliers; ++s) {
    ended = ended || s > known || token(s) == g.end;
    mixed ^= static_cast<uint64_t>(ended ? g.end : token(s)) * g.multiplier[s];
    for (int64_t h = 0; h < g.heads; ++h, ++head) {
      rows[head] = static_cast<int32_t>(first_row + static_cast<int64_t>(mixed % g.size[head]));
      first_row += static_cast<int64_t>(g.size[head]);
    }
  }
}

__global__ void ngram_ids(const int32_t* ids, const int32_t* begin, int32_t* out, Ngrams g, int64_t tokens) {
  const int64_t t = thread_in_grid();
  if (t < tokens) hash(g, t - begin[t], PackedTokens{ids, t}, out + t * g.rows_per_token);
}

struct CachedTokens {
  const int32_t *ids, *stream, *positions;
  int32_t *state, *out;
  int64_t tokens, streams, length;
};

// One more stream stands for the tokens that have none.
__global__ void ngram_ids_cached(CachedTokens k, Ngrams g) {
  const int64_t i = thread_in_grid();
  if (i > k.streams) return;
  const int64_t mine = i == k.streams ? -1 : i;
  for (int64_t t = 0; t < k.tokens; ++t) {
    if (k.stream[t] != mine) continue;
    int32_t* const rows = k.out + t * g.rows_per_token;
    if (mine < 0) {
      for (int64_t row = 0; row < g.rows_per_token; ++row) rows[row] = 0;
      continue;
    }
    int32_t* const state = k.state + mine * k.length;
    const int64_t position = k.positions[t];
    hash(g, position, KeptTokens{state, k.length, position, k.ids[t]}, rows);
    state[position % k.length] = k.ids[t];
  }
}

__global__ void lookup_ids(const float* table, const int32_t* ids, int32_t* out, int64_t rows, int64_t n,
                           int64_t count) {
  const int64_t i = thread_in_grid();
  if (i >= count) return;
  const int64_t id = ids[i / n];
  if (id < 0 || id >= rows) stop();
  out[i] = static_cast<int32_t>(table[id * n + i % n]);
}

Ngrams ngrams_of(const KernelCall& call) {
  const std::vector<int64_t>& multipliers = call.attrs->integers("multipliers");
  const std::vector<int64_t>& sizes = call.attrs->integers("sizes");
  Ngrams g{{},
           {},
           static_cast<int64_t>(multipliers.size()),
           call.attrs->integer("heads"),
           static_cast<int64_t>(sizes.size()),
           call.attrs->integer("end")};
  std::copy(multipliers.begin(), multipliers.end(), g.multiplier);
  std::copy(sizes.begin(), sizes.end(), g.size);
  return g;
}

bool serves_ngrams(const OpSite& site, const DeviceFacts& facts) {
  return serves_plain(site, facts) && site.attrs.integers("multipliers").size() <= kMostMultipliers &&
         site.attrs.integers("sizes").size() <= kMostSizes;
}

void run(const KernelCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0];
  launch(call, ngram_ids, blocks_for(tokens), kThreads, 0, input_as<int32_t>(call, 0),
         input_as<int32_t>(call, 1), output_as<int32_t>(call, 0), ngrams_of(call), tokens);
}

void run_cached(const KernelCall& call) {
  const Shape& state = call.inputs[1].type.shape;
  const CachedTokens k{.ids = input_as<int32_t>(call, 0),
                       .stream = input_as<int32_t>(call, 2),
                       .positions = input_as<int32_t>(call, 3),
                       .state = output_as<int32_t>(call, 1),
                       .out = output_as<int32_t>(call, 0),
                       .tokens = call.inputs[0].type.shape[0],
                       .streams = state[0],
                       .length = state[1]};
  launch(call, ngram_ids_cached, blocks_for(k.streams + 1), kThreads, 0, k, ngrams_of(call));
}

void run_lookup(const KernelCall& call) {
  const Shape& table = call.inputs[0].type.shape;
  const int64_t count = call.outputs[0].type.elements();
  launch(call, lookup_ids, blocks_for(count), kThreads, 0, input_as<float>(call, 0),
         input_as<int32_t>(call, 1), output_as<int32_t>(call, 0), table[0], table[1], count);
}

constexpr KernelDef kKernels[] = {
    {.op = "ngram_ids", .name = "ngram_ids", .serves = serves_ngrams, .run = run},
    {.op = "ngram_ids_cached", .name = "ngram_ids_cached", .serves = serves_ngrams, .run = run_cached},
    {.op = "lookup_ids", .name = "lookup_ids", .serves = serves_plain, .run = run_lookup},
};

}  // namespace

std::span<const KernelDef> ngram_ids_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
