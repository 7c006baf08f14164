// wkv over packed sequences, wkv_cached over the states of streams, and the gradient: a thread a channel,
// tokens one after another.
#include "ops/wkv.h"

#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"

namespace tenon::cuda {
namespace {

constexpr int kChannels = 64;  // of a block: few, so that a few thousand channels spread over the GPU

struct Wkv {
  Tensor k, v;
  const float *decay, *bonus;
  int64_t tokens, channels;
};

Wkv wkv_of(const KernelCall& call) {
  const Shape& k = call.inputs[0].type.shape;
  return {input(call, 0), input(call, 1), input_as<float>(call, 2), input_as<float>(call, 3), k[0], k[1]};
}

struct State {
  float numerator = 0, denominator = 0, largest = 0;

  __device__ static State read(const float* from, int64_t channels) {
    State out;
    out.numerator = from[0];
    out.denominator = from[channels];
    out.largest = from[2 * channels];
    return out;
  }
  __device__ void write(float* to, int64_t channels) const {
    to[0] = numerator;
    to[channels] = denominator;
    to[2 * channels] = largest;
  }
};

// What a state and a token's own value weigh in the sums, where the token's exponent is `own_exponent` and
// the state has decayed by `decay`. A state whose denominator is 0 is empty.
struct Weights {
  float before, own, largest;

  __device__ Weights(const State& state, float decay, float own_exponent) {
    const bool empty = state.denominator == 0;
    const float decayed = state.largest + decay;
    largest = empty ? own_exponent : fmaxf(decayed, own_exponent);
    before = empty ? 0.0f : expf(decayed - largest);
    own = expf(own_exponent - largest);
  }
};

__device__ inline float read_out(const State& s, float bonus, float k, float v) {
  const Weights w(s, 0, k + bonus);
  return (w.before * s.numerator + w.own * v) / (w.before * s.denominator + w.own);
}

__device__ inline State advanced(const State& s, float decay, float k, float v) {
  const Weights w(s, decay, k);
  State out;
  out.numerator = w.before * s.numerator + w.own * v;
  out.denominator = w.before * s.denominator + w.own;
  out.largest = w.largest;
  return out;
}

__global__ void wkv(Wkv p, const int32_t* begin, Tensor out, float* states, int64_t chunk) {
  const int64_t c = thread_in_grid();
  if (c >= p.channels) return;
  const float decay = p.decay[c], bonus = p.bonus[c];
  State state;
  for (int64_t t = 0; t < p.tokens; ++t) {
    if (t % chunk == 0) state.write(states + t / chunk * kWkvState * p.channels + c, p.channels);
    if (begin[t] == t) state = State();
    const int64_t at = t * p.channels + c;
    const float k = load(p.k, at), v = load(p.v, at);
    store(out, at, read_out(state, bonus, k, v));
    state = advanced(state, decay, k, v);
  }
}

// One axis of the grid is the stream; one more than there are gives zeros for the tokens that have none.
__global__ void wkv_cached(Wkv p, const int32_t* stream, const int32_t* positions, Tensor out, float* states,
                           int64_t streams) {
  const int64_t c = thread_in_grid(), mine = blockIdx.y;
  if (c >= p.channels) return;
  const float decay = p.decay[c], bonus = p.bonus[c];
  float* const kept = states + mine * kWkvState * p.channels + c;
  State state;
  if (mine < streams) state = State::read(kept, p.channels);
  for (int64_t t = 0; t < p.tokens; ++t) {
    if (stream[t] != (mine == streams ? -1 : mine)) continue;
    const int64_t at = t * p.channels + c;
    if (mine == streams) {
      store(out, at, 0.0f);
      continue;
    }
    if (positions[t] == 0) state = State();
    const float k = load(p.k, at), v = load(p.v, at);
    store(out, at, read_out(state, bonus, k, v));
    state = advanced(state, decay, k, v);
  }
  if (mine < streams) state.write(kept, p.channels);
}

struct WkvGradient {
  Wkv p;
  const int32_t* begin;
  const float* states;
  Tensor dout, dk, dv;
  float *d_decay, *d_bonus;
  float* before;  // workspace: [chunk, 3, channels], the state before each token of a chunk
  int64_t chunk;
};

// Gradients of both sums of the state after a token, then before it, and of decay and bonus.
struct Gradients {
  float numerator = 0, denominator = 0, decay = 0, bonus = 0;
};

__device__ inline void token_back(const WkvGradient& g, int64_t t, int64_t c, const State& s, Gradients& d) {
  const int64_t at = t * g.p.channels + c;
  const float k = load(g.p.k, at), v = load(g.p.v, at);
  const Weights read(s, 0, k + g.p.bonus[c]), kept(s, g.p.decay[c], k);
  const float denominator = read.before * s.denominator + read.own;
  const float out = (read.before * s.numerator + read.own * v) / denominator;
  const float d_numerator = load(g.dout, at) / denominator, d_denominator = -out * d_numerator;
  // The value less the output, without the cancellation where the token's own value is most of it.
  const float lead = read.before * (v * s.denominator - s.numerator) / denominator;
  const float d_own = read.own * d_numerator * lead;
  store(g.dk, at, kept.own * (d.numerator * v + d.denominator) + d_own);
  store(g.dv, at, kept.own * d.numerator + read.own * d_numerator);
  d.decay += kept.before * (d.numerator * s.numerator + d.denominator * s.denominator);
  d.bonus += d_own;
  const bool begins = g.begin[t] == t;
  d.numerator = begins ? 0.0f : kept.before * d.numerator + read.before * d_numerator;
  d.denominator = begins ? 0.0f : kept.before * d.denominator + read.before * d_denominator;
}

__global__ void wkv_grad(WkvGradient g) {
  const Wkv& p = g.p;
  const int64_t c = thread_in_grid();
  if (c >= p.channels) return;
  Gradients d;
  for (int64_t chunk = (p.tokens + g.chunk - 1) / g.chunk; chunk-- > 0;) {
    const int64_t first = chunk * g.chunk, end = first + g.chunk < p.tokens ? first + g.chunk : p.tokens;
    State state = State::read(g.states + chunk * kWkvState * p.channels + c, p.channels);
    for (int64_t t = first; t < end; ++t) {
      if (g.begin[t] == t) state = State();
      state.write(g.before + (t - first) * kWkvState * p.channels + c, p.channels);
      const int64_t at = t * p.channels + c;
      state = advanced(state, p.decay[c], load(p.k, at), load(p.v, at));
    }
    for (int64_t t = end; t-- > first;) {
      const State before = State::read(g.before + (t - first) * kWkvState * p.channels + c, p.channels);
      token_back(g, t, c, before, d);
    }
  }
  g.d_decay[c] = d.decay;
  g.d_bonus[c] = d.bonus;
}

void run(const KernelCall& call) {
  const Wkv p = wkv_of(call);
  launch(call, wkv, blocks_for(p.channels, kChannels), kChannels, 0, p, input_as<int32_t>(call, 4),
         output(call, 0), output_as<float>(call, 1), call.attrs->integer("chunk"));
}

void run_cached(const KernelCall& call) {
  const Wkv p = wkv_of(call);
  const int64_t streams = call.inputs[4].type.shape[0];
  launch(call, wkv_cached, dim3(blocks_for(p.channels, kChannels), static_cast<unsigned>(streams + 1)),
         kChannels, 0, p, input_as<int32_t>(call, 5), input_as<int32_t>(call, 6), output(call, 0),
         output_as<float>(call, 1), streams);
}

int64_t workspace(const OpSite& site, const DeviceFacts&) {
  const int64_t states = site.attrs.integer("chunk") * kWkvState * site.inputs[0].shape[1];
  return states * static_cast<int64_t>(sizeof(float));
}

void run_grad(const KernelCall& call) {
  const Wkv p = wkv_of(call);
  const WkvGradient g{.p = p,
                      .begin = input_as<int32_t>(call, 4),
                      .states = input_as<float>(call, 5),
                      .dout = input(call, 6),
                      .dk = output(call, 0),
                      .dv = output(call, 1),
                      .d_decay = output_as<float>(call, 2),
                      .d_bonus = output_as<float>(call, 3),
                      .before = reinterpret_cast<float*>(call.workspace.data()),
                      .chunk = call.attrs->integer("chunk")};
  launch(call, wkv_grad, blocks_for(p.channels, kChannels), kChannels, 0, g);
}

constexpr KernelDef kKernels[] = {
    {.op = "wkv", .name = "wkv", .serves = serves_plain, .run = run},
    {.op = "wkv_cached", .name = "wkv_cached", .serves = serves_plain, .run = run_cached},
    {.op = "wkv_grad",
     .name = "wkv_grad",
     .serves = serves_plain,
     .workspace_bytes = workspace,
     .run = run_grad},
};

}  // namespace

std::span<const KernelDef> wkv_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
