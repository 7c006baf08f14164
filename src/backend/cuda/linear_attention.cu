// linear_attention over packed sequences and linear_attention_cached over the states of streams: a warp for a
// few columns of a head's state, tokens one after the other. Columns do not depend on each other.
#include "backend/cuda/linear_attention.h"

#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"

namespace tenon::cuda {
namespace {

constexpr int kColumns = 4;
constexpr unsigned kWarpsPerBlock = 4;

// Moves the state a token on and reads it out.
template <int kRows>
__device__ void advance(StateTile<kRows, kColumns>& state, const LinearOperands& o, const LinearSizes& s,
                        int64_t t, int64_t head, int64_t first, const Tensor& out) {
  const auto token = TokenOperands<kRows, kColumns>::of(o, s, t, head, first);
  state.multiply_rows(token.decay);
  token.write_to(state, s);
  float read[kColumns];
  state.column_dots(token.q, read);
  const int64_t at = (t * s.heads + head) * s.p + first;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    if (lane == c && first + c < s.p) store(out, at + c, s.scale * read[c]);
  }
}

// The item of a warp, of `columns` warps a head.
struct WarpItem {
  int64_t head, first;  // first column
  __device__ static WarpItem mine(int64_t item, const LinearSizes& s) {
    const int64_t columns = (s.p + kColumns - 1) / kColumns;
    return {item / columns, item % columns * kColumns};
  }
};

__device__ inline int64_t warp_in_grid() {
  return static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
}

template <int kRows>
__global__ void linear_attention(LinearOperands o, const int32_t* begin, Tensor out, float* states,
                                 int64_t chunk, LinearSizes s) {
  const WarpItem item = WarpItem::mine(warp_in_grid(), s);
  if (item.head >= s.heads) return;
  StateTile<kRows, kColumns> state;
  state.clear();
  for (int64_t t = 0; t < s.tokens; ++t) {
    if (t % chunk == 0) {
      state.store_to(states + (t / chunk * s.heads + item.head) * s.n * s.p, s, item.first);
    }
    if (begin[t] == t) state.clear();
    advance(state, o, s, t, item.head, item.first, out);
  }
}

// One more stream than there are gives zeros for the tokens that have none.
template <int kRows>
__global__ void linear_attention_cached(LinearOperands o, const int32_t* stream, const int32_t* positions,
                                        Tensor out, float* states, int64_t streams, LinearSizes s) {
  const WarpItem all = WarpItem::mine(warp_in_grid(), s);
  const int64_t mine = all.head / s.heads, head = all.head % s.heads;
  if (mine > streams) return;
  float* const kept = states + (mine * s.heads + head) * s.n * s.p;
  StateTile<kRows, kColumns> state;
  if (mine < streams) state.load_from(kept, s, all.first);
  for (int64_t t = 0; t < s.tokens; ++t) {
    if (stream[t] != (mine == streams ? -1 : mine)) continue;
    if (mine == streams) {
      const int64_t column = all.first + threadIdx.x % kWarp;
      if (threadIdx.x % kWarp < kColumns && column < s.p) {
        store(out, (t * s.heads + head) * s.p + column, 0.0f);
      }
      continue;
    }
    if (positions[t] == 0) state.clear();
    advance(state, o, s, t, head, all.first, out);
  }
  if (mine < streams) state.store_to(kept, s, all.first);
}

LinearOperands operands(const KernelCall& call, size_t beta) {
  return {input(call, 0), input(call, 1), input(call, 2), input_as<float>(call, 3),
          call.inputs.size() > beta ? input_as<float>(call, beta) : nullptr};
}

unsigned blocks(const LinearSizes& s, int64_t streams) {
  return blocks_for(streams * s.heads * ceil_div(s.p, kColumns), kWarpsPerBlock);
}

void run(const KernelCall& call) {
  const LinearSizes s = linear_sizes(call);
  with_state_rows(s.n, [&](auto rows) {
    launch(call, linear_attention<decltype(rows)::value>, blocks(s, 1), kWarpsPerBlock * kWarp, 0,
           operands(call, 5), input_as<int32_t>(call, 4), output(call, 0), output_as<float>(call, 1),
           call.attrs->integer("chunk"), s);
  });
}

void run_cached(const KernelCall& call) {
  const LinearSizes s = linear_sizes(call);
  const int64_t streams = call.inputs[4].type.shape[0];
  with_state_rows(s.n, [&](auto rows) {
    launch(call, linear_attention_cached<decltype(rows)::value>, blocks(s, streams + 1),
           kWarpsPerBlock * kWarp, 0, operands(call, 7), input_as<int32_t>(call, 5),
           input_as<int32_t>(call, 6), output(call, 0), output_as<float>(call, 1), streams, s);
  });
}

bool serves(const OpSite& site, const DeviceFacts& facts) {
  return serves_plain(site, facts) && site.inputs[0].shape[2] <= kMostStateRows;
}

constexpr KernelDef kKernels[] = {
    {.op = "linear_attention", .name = "linear_attention_warps", .serves = serves, .run = run},
    {.op = "linear_attention_cached",
     .name = "linear_attention_cached_warps",
     .serves = serves,
     .run = run_cached},
};

}  // namespace

std::span<const KernelDef> linear_attention_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
