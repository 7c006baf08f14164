// selective_scan over packed sequences, selective_scan_cached over the states of streams, and the gradient:
// kLanes lanes hold the state of a channel, tokens go by one after the other.
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"

namespace tenon::cuda {
namespace {

constexpr int kLanes = 16;         // of a channel
constexpr int kMostChannels = 64;  // of a block
constexpr int64_t kMostPerLane = 8;

struct Scan {
  Tensor x, b, c;
  const float *dt, *a;
  int64_t tokens, channels, n, groups;

  __device__ int64_t group_row(int64_t t, int64_t channel) const {
    return (t * groups + channel / (channels / groups)) * n;
  }
};

Scan scan_of(const KernelCall& call) {
  const Shape &x = call.inputs[0].type.shape, &b = call.inputs[3].type.shape;
  return {input(call, 0),
          input(call, 3),
          input(call, 4),
          input_as<float>(call, 1),
          input_as<float>(call, 2),
          x[0],
          x[1],
          b[2],
          b[1]};
}

// Over the lanes of a channel, given to each.
__device__ inline float channel_sum(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(kWholeWarp, value, offset);
  return value;
}

__device__ inline int state_index(int r) {
  return static_cast<int>(threadIdx.x) % kLanes + r * kLanes;
}

// A channel's state: its elements of this lane.
template <int kPer>
struct ChannelState {
  float value[kPer] = {}, a[kPer] = {};

  __device__ void clear() {
#pragma unroll
    for (int r = 0; r < kPer; ++r) value[r] = 0;
  }
  __device__ void load_rates(const Scan& s, int64_t channel) {
#pragma unroll
    for (int r = 0; r < kPer; ++r) a[r] = state_index(r) < s.n ? s.a[channel * s.n + state_index(r)] : 0.0f;
  }
  __device__ void load_from(const float* from, const Scan& s) {
#pragma unroll
    for (int r = 0; r < kPer; ++r) value[r] = state_index(r) < s.n ? from[state_index(r)] : 0.0f;
  }
  __device__ void store_to(float* to, const Scan& s) const {
#pragma unroll
    for (int r = 0; r < kPer; ++r) {
      if (state_index(r) < s.n) to[state_index(r)] = value[r];
    }
  }
  __device__ void advance(const Scan& s, int64_t t, int64_t channel) {
    const int64_t at = t * s.channels + channel, row = s.group_row(t, channel);
    const float dt = s.dt[at], push = dt * load(s.x, at);
#pragma unroll
    for (int r = 0; r < kPer; ++r) {
      if (state_index(r) < s.n) {
        value[r] = expf(dt * a[r]) * value[r] + push * load(s.b, row + state_index(r));
      }
    }
  }
  __device__ float read(const Scan& s, int64_t t, int64_t channel) const {
    const int64_t row = s.group_row(t, channel);
    float part = 0;
#pragma unroll
    for (int r = 0; r < kPer; ++r) {
      if (state_index(r) < s.n) part += value[r] * load(s.c, row + state_index(r));
    }
    return channel_sum(part);
  }
};

// Lanes past the last channel go along, since sums are over whole warps, with the last one's values.
struct ChannelLane {
  int64_t channel;
  bool real;
  __device__ static ChannelLane of(int64_t channel, int64_t count) {
    return {channel < count ? channel : count - 1, channel < count};
  }
  __device__ bool writes() const { return real && threadIdx.x % kLanes == 0; }
};

template <int kPer>
__global__ void selective_scan(Scan s, const int32_t* begin, Tensor out, float* states, int64_t chunk) {
  const ChannelLane lane = ChannelLane::of(thread_in_grid() / kLanes, s.channels);
  ChannelState<kPer> state;
  state.clear();
  state.load_rates(s, lane.channel);
  for (int64_t t = 0; t < s.tokens; ++t) {
    if (t % chunk == 0 && lane.real) {
      state.store_to(states + (t / chunk * s.channels + lane.channel) * s.n, s);
    }
    if (begin[t] == t) state.clear();
    state.advance(s, t, lane.channel);
    const float read = state.read(s, t, lane.channel);
    if (lane.writes()) store(out, t * s.channels + lane.channel, read);
  }
}

// One axis of the grid is the stream; one more than there are gives zeros for the tokens that have none.
template <int kPer>
__global__ void selective_scan_cached(Scan s, const int32_t* stream, const int32_t* positions, Tensor out,
                                      float* states, int64_t streams) {
  const ChannelLane lane = ChannelLane::of(thread_in_grid() / kLanes, s.channels);
  const int64_t mine = blockIdx.y;
  float* const kept = states + (mine * s.channels + lane.channel) * s.n;
  ChannelState<kPer> state;
  state.load_rates(s, lane.channel);
  if (mine < streams) state.load_from(kept, s);
  for (int64_t t = 0; t < s.tokens; ++t) {
    if (stream[t] != (mine == streams ? -1 : mine)) continue;
    float read = 0;
    if (mine < streams) {
      if (positions[t] == 0) state.clear();
      state.advance(s, t, lane.channel);
      read = state.read(s, t, lane.channel);
    }
    if (lane.writes()) store(out, t * s.channels + lane.channel, read);
  }
  if (mine < streams && lane.real) state.store_to(kept, s);
}

struct ScanGradient {
  Scan s;
  const int32_t* begin;
  const float* states;
  Tensor dout, dx;
  float *ddt, *da;
  float* before;  // workspace: [chunk, channels, n], the state before each token of a chunk
  float* parts;   // workspace: [blocks of a group, tokens, groups, 2, n], of db and dc
  int64_t chunk, channels_per_block;
};

// What the channels of a block add to db and dc of a token: each warp its two channels', then all in the
// order of warps.
template <int kPer>
__device__ void add_block(const ScanGradient& g, int64_t t, float* shared, const float (&db)[kPer],
                          const float (&dc)[kPer]) {
  const int n = static_cast<int>(g.s.n), warps = static_cast<int>(blockDim.x) / kWarp;
  float* const mine = shared + static_cast<int64_t>(threadIdx.x / kWarp) * 2 * n;
#pragma unroll
  for (int r = 0; r < kPer; ++r) {
    const float b = db[r] + __shfl_xor_sync(kWholeWarp, db[r], kLanes);
    const float c = dc[r] + __shfl_xor_sync(kWholeWarp, dc[r], kLanes);
    if (state_index(r) < n && threadIdx.x % kWarp < kLanes) {
      mine[state_index(r)] = b;
      mine[n + state_index(r)] = c;
    }
  }
  __syncthreads();
  float* const out = g.parts + ((blockIdx.x * g.s.tokens + t) * g.s.groups + blockIdx.y) * 2 * n;
  for (int i = static_cast<int>(threadIdx.x); i < 2 * n; i += static_cast<int>(blockDim.x)) {
    float total = 0;
    for (int w = 0; w < warps; ++w) total += shared[w * 2 * n + i];
    out[i] = total;
  }
  __syncthreads();
}

template <int kPer>
__device__ void token_back(const ScanGradient& g, int64_t t, const ChannelLane& lane,
                           const ChannelState<kPer>& before, float (&gradient)[kPer], float (&da)[kPer],
                           float* shared) {
  const Scan& s = g.s;
  const int64_t at = t * s.channels + lane.channel, row = s.group_row(t, lane.channel);
  const float x = load(s.x, at), dt = s.dt[at], dout = load(g.dout, at);
  const bool begins = g.begin[t] == t;
  float dx = 0, ddt = 0, db[kPer], dc[kPer];
#pragma unroll
  for (int r = 0; r < kPer; ++r) {
    db[r] = dc[r] = 0;
    if (state_index(r) >= s.n || !lane.real) continue;
    const float b = load(s.b, row + state_index(r)), c = load(s.c, row + state_index(r));
    const float decay = expf(dt * before.a[r]), old = before.value[r];
    const float d = gradient[r] + dout * c;
    dc[r] = dout * (decay * old + dt * x * b);
    dx += d * dt * b;
    ddt += d * (x * b + before.a[r] * decay * old);
    da[r] += d * dt * decay * old;
    db[r] = d * dt * x;
    gradient[r] = begins ? 0.0f : d * decay;
  }
  dx = channel_sum(dx);
  ddt = channel_sum(ddt);
  if (lane.writes()) {
    store(g.dx, at, dx);
    g.ddt[at] = ddt;
  }
  add_block(g, t, shared, db, dc);
}

template <int kPer>
__global__ void __launch_bounds__(kMostChannels* kLanes) selective_scan_grad(ScanGradient g) {
  TENON_DYNAMIC_SHARED(float, shared);
  const Scan& s = g.s;
  const int64_t per_group = s.channels / s.groups;
  const int64_t place = blockIdx.x * g.channels_per_block + threadIdx.x / kLanes;
  ChannelLane lane = ChannelLane::of(place, per_group);
  lane.channel += blockIdx.y * per_group;
  ChannelState<kPer> state;
  state.load_rates(s, lane.channel);
  float gradient[kPer] = {}, da[kPer] = {};
  for (int64_t chunk = (s.tokens + g.chunk - 1) / g.chunk; chunk-- > 0;) {
    const int64_t first = chunk * g.chunk, end = first + g.chunk < s.tokens ? first + g.chunk : s.tokens;
    state.load_from(g.states + (chunk * s.channels + lane.channel) * s.n, s);
    for (int64_t t = first; t < end; ++t) {
      if (g.begin[t] == t) state.clear();
      if (lane.real) state.store_to(g.before + ((t - first) * s.channels + lane.channel) * s.n, s);
      state.advance(s, t, lane.channel);
    }
    for (int64_t t = end; t-- > first;) {
      state.clear();
      if (lane.real) state.load_from(g.before + ((t - first) * s.channels + lane.channel) * s.n, s);
      token_back(g, t, lane, state, gradient, da, shared);
    }
  }
#pragma unroll
  for (int r = 0; r < kPer; ++r) {
    if (lane.real && state_index(r) < s.n) g.da[lane.channel * s.n + state_index(r)] = da[r];
  }
}

__global__ void add_parts(const float* parts, Tensor db, Tensor dc, int64_t blocks, int64_t rows, int64_t n) {
  const int64_t i = thread_in_grid();
  if (i >= rows * 2 * n) return;
  float total = 0;
  for (int64_t block = 0; block < blocks; ++block) total += parts[block * rows * 2 * n + i];
  const int64_t row = i / (2 * n), column = i % (2 * n);
  if (column < n) {
    store(db, row * n + column, total);
  } else {
    store(dc, row * n + column - n, total);
  }
}

// Channels of a block, a multiple of those of a warp.
int64_t channels_per_block(int64_t per_group) {
  constexpr int64_t kOfWarp = kWarp / kLanes;
  return std::min<int64_t>(kMostChannels, ceil_div(per_group, kOfWarp) * kOfWarp);
}

template <typename Body>
void with_state_size(int64_t n, Body body) {
  if (n <= kLanes) return body(std::integral_constant<int, 1>{});
  if (n <= 2 * kLanes) return body(std::integral_constant<int, 2>{});
  body(std::integral_constant<int, kMostPerLane>{});
}

unsigned blocks_of(const Scan& s) {
  return blocks_for(s.channels * kLanes);
}

void run(const KernelCall& call) {
  const Scan s = scan_of(call);
  with_state_size(s.n, [&](auto per) {
    launch(call, selective_scan<decltype(per)::value>, blocks_of(s), kThreads, 0, s,
           input_as<int32_t>(call, 5), output(call, 0), output_as<float>(call, 1),
           call.attrs->integer("chunk"));
  });
}

void run_cached(const KernelCall& call) {
  const Scan s = scan_of(call);
  const int64_t streams = call.inputs[5].type.shape[0];
  with_state_size(s.n, [&](auto per) {
    launch(call, selective_scan_cached<decltype(per)::value>,
           dim3(blocks_of(s), static_cast<unsigned>(streams + 1)), kThreads, 0, s, input_as<int32_t>(call, 6),
           input_as<int32_t>(call, 7), output(call, 0), output_as<float>(call, 1), streams);
  });
}

int64_t before_elements(const Attrs& attrs, int64_t channels, int64_t n) {
  return attrs.integer("chunk") * channels * n;
}

int64_t workspace(const OpSite& site, const DeviceFacts&) {
  const Shape &x = site.inputs[0].shape, &b = site.inputs[3].shape;
  const int64_t per_group = x[1] / b[1];
  const int64_t parts = ceil_div(per_group, channels_per_block(per_group)) * x[0] * b[1] * 2 * b[2];
  return (before_elements(site.attrs, x[1], b[2]) + parts) * static_cast<int64_t>(sizeof(float));
}

void run_grad(const KernelCall& call) {
  const Scan s = scan_of(call);
  const int64_t per_group = s.channels / s.groups, channels = channels_per_block(per_group);
  float* const work = reinterpret_cast<float*>(call.workspace.data());
  const ScanGradient g{.s = s,
                       .begin = input_as<int32_t>(call, 5),
                       .states = input_as<float>(call, 6),
                       .dout = input(call, 7),
                       .dx = output(call, 0),
                       .ddt = output_as<float>(call, 1),
                       .da = output_as<float>(call, 2),
                       .before = work,
                       .parts = work + before_elements(*call.attrs, s.channels, s.n),
                       .chunk = call.attrs->integer("chunk"),
                       .channels_per_block = channels};
  const int64_t blocks = ceil_div(per_group, channels), rows = s.tokens * s.groups;
  const auto threads = static_cast<unsigned>(channels * kLanes);
  const size_t shared = threads / kWarp * 2 * static_cast<size_t>(s.n) * sizeof(float);
  with_state_size(s.n, [&](auto per) {
    launch(call, selective_scan_grad<decltype(per)::value>,
           dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(s.groups)), threads, shared, g);
  });
  launch(call, add_parts, blocks_for(rows * 2 * s.n), kThreads, 0, static_cast<const float*>(g.parts),
         output(call, 3), output(call, 4), blocks, rows, s.n);
}

bool serves(const OpSite& site, const DeviceFacts& facts) {
  return serves_plain(site, facts) && site.inputs[3].shape[2] <= kLanes * kMostPerLane;
}

constexpr KernelDef kKernels[] = {
    {.op = "selective_scan", .name = "selective_scan_lanes", .serves = serves, .run = run},
    {.op = "selective_scan_cached",
     .name = "selective_scan_cached_lanes",
     .serves = serves,
     .run = run_cached},
    {.op = "selective_scan_grad",
     .name = "selective_scan_grad_lanes",
     .serves = serves,
     .workspace_bytes = workspace,
     .run = run_grad},
};

}  // namespace

std::span<const KernelDef> selective_scan_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
