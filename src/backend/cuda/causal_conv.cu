// causal_conv and its gradients over packed sequences, and over the last inputs that streams keep.
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"

namespace tenon::cuda {
namespace {

struct Taps {
  int64_t tokens, channels, taps, dilation;
  __device__ int64_t reach(int64_t j) const { return (taps - 1 - j) * dilation; }  // tokens back to tap j
};

__global__ void causal_conv(Tensor x, Tensor w, const int32_t* begin, Tensor out, Taps p) {
  const int64_t i = thread_in_grid();
  if (i >= p.tokens * p.channels) return;
  const int64_t t = i / p.channels, c = i % p.channels;
  float total = 0;
  for (int64_t j = 0; j < p.taps; ++j) {
    const int64_t s = t - p.reach(j);
    if (s >= begin[t]) total += load(w, c * p.taps + j) * load(x, s * p.channels + c);
  }
  store(out, i, total);
}

__global__ void causal_conv_grad_input(Tensor dy, Tensor w, const int32_t* begin, Tensor dx, Taps p) {
  const int64_t i = thread_in_grid();
  if (i >= p.tokens * p.channels) return;
  const int64_t s = i / p.channels, c = i % p.channels;
  float total = 0;
  for (int64_t j = 0; j < p.taps; ++j) {
    const int64_t t = s + p.reach(j);
    if (t < p.tokens && begin[t] <= s) total += load(w, c * p.taps + j) * load(dy, t * p.channels + c);
  }
  store(dx, i, total);
}

// A thread a channel and tap: its tokens in order.
__global__ void causal_conv_grad_weight(Tensor x, Tensor dy, const int32_t* begin, float* dw, Taps p) {
  const int64_t i = thread_in_grid();
  if (i >= p.channels * p.taps) return;
  const int64_t c = i % p.channels, j = i / p.channels;
  float total = 0;
  for (int64_t t = 0; t < p.tokens; ++t) {
    const int64_t s = t - p.reach(j);
    if (s >= begin[t]) total += load(x, s * p.channels + c) * load(dy, t * p.channels + c);
  }
  dw[c * p.taps + j] = total;
}

// A thread a channel of a stream, over the stream's tokens in order; one more stream for tokens that have
// none.
__global__ void causal_conv_cached(Tensor x, Tensor w, const int32_t* stream, const int32_t* positions,
                                   Tensor out, Tensor state, int64_t streams, int64_t rows, Taps p) {
  const int64_t i = thread_in_grid();
  if (i >= (streams + 1) * p.channels) return;
  const int64_t mine = i / p.channels == streams ? -1 : i / p.channels, c = i % p.channels;
  for (int64_t t = 0; t < p.tokens; ++t) {
    if (stream[t] != mine) continue;
    float total = 0;
    const float value = load(x, t * p.channels + c);
    for (int64_t j = 0; mine >= 0 && j < p.taps; ++j) {
      const int64_t at = positions[t] - p.reach(j);
      if (at < 0) continue;
      const float from = at == positions[t] ? value : load(state, (mine * rows + at % rows) * p.channels + c);
      total += load(w, c * p.taps + j) * from;
    }
    store(out, t * p.channels + c, total);
    if (mine >= 0 && rows > 0) store(state, (mine * rows + positions[t] % rows) * p.channels + c, value);
  }
}

Taps taps_of(const KernelCall& call, int64_t taps) {
  const Shape& x = call.inputs[0].type.shape;
  return {x[0], x[1], taps, call.attrs->integer("dilation")};
}

void run_forward(const KernelCall& call) {
  const Taps p = taps_of(call, call.inputs[1].type.shape[1]);
  launch(call, causal_conv, blocks_for(p.tokens * p.channels), kThreads, 0, input(call, 0), input(call, 1),
         input_as<int32_t>(call, 2), output(call, 0), p);
}

void run_grad_input(const KernelCall& call) {
  const Taps p = taps_of(call, call.inputs[1].type.shape[1]);
  launch(call, causal_conv_grad_input, blocks_for(p.tokens * p.channels), kThreads, 0, input(call, 0),
         input(call, 1), input_as<int32_t>(call, 2), output(call, 0), p);
}

void run_grad_weight(const KernelCall& call) {
  const Taps p = taps_of(call, call.attrs->integer("taps"));
  launch(call, causal_conv_grad_weight, blocks_for(p.channels * p.taps), kThreads, 0, input(call, 0),
         input(call, 1), input_as<int32_t>(call, 2), output_as<float>(call, 0), p);
}

void run_cached(const KernelCall& call) {
  const Taps p = taps_of(call, call.inputs[1].type.shape[1]);
  const Shape& state = call.inputs[2].type.shape;
  launch(call, causal_conv_cached, blocks_for((state[0] + 1) * p.channels), kThreads, 0, input(call, 0),
         input(call, 1), input_as<int32_t>(call, 3), input_as<int32_t>(call, 4), output(call, 0),
         output(call, 1), state[0], state[1], p);
}

constexpr KernelDef kKernels[] = {
    {.op = "causal_conv", .name = "causal_conv", .serves = serves_plain, .run = run_forward},
    {.op = "causal_conv_cached", .name = "causal_conv_cached", .serves = serves_plain, .run = run_cached},
    {.op = "causal_conv_grad_input",
     .name = "causal_conv_grad_input",
     .serves = serves_plain,
     .run = run_grad_input},
    {.op = "causal_conv_grad_weight",
     .name = "causal_conv_grad_weight",
     .serves = serves_plain,
     .run = run_grad_weight},
};

}  // namespace

std::span<const KernelDef> causal_conv_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
