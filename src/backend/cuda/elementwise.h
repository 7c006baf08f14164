// The one kernel behind the element-wise ops: kInputs tensors to kOutputs tensors of the same number of
// elements, kVector elements a thread. All inputs of an element are read before its outputs are written, so
// outputs may lie in the place of inputs of the same width.
#pragma once

#include "backend/cuda/launch.h"

namespace tenon::cuda {

template <int kCount>
struct Tensors {
  Tensor tensor[kCount];
};

// F: void operator()(const float (&x)[kInputs], float (&y)[kOutputs], int64_t index) const.
template <typename F, int kInputs, int kOutputs>
__global__ void elementwise(F f, Tensors<kInputs> in, Tensors<kOutputs> out, int64_t count) {
  const int64_t begin = thread_in_grid() * kVector;
  if (begin >= count) return;
  if (begin + kVector <= count) {
    float x[kInputs][kVector], y[kOutputs][kVector];
#pragma unroll
    for (int i = 0; i < kInputs; ++i) load_vector(in.tensor[i], begin, x[i]);
#pragma unroll
    for (int e = 0; e < kVector; ++e) {
      float from[kInputs], to[kOutputs];
#pragma unroll
      for (int i = 0; i < kInputs; ++i) from[i] = x[i][e];
      f(from, to, begin + e);
#pragma unroll
      for (int o = 0; o < kOutputs; ++o) y[o][e] = to[o];
    }
#pragma unroll
    for (int o = 0; o < kOutputs; ++o) store_vector(out.tensor[o], begin, y[o]);
    return;
  }
  for (int64_t i = begin; i < count; ++i) {
    float from[kInputs], to[kOutputs];
    for (int t = 0; t < kInputs; ++t) from[t] = load(in.tensor[t], i);
    f(from, to, i);
    for (int t = 0; t < kOutputs; ++t) store(out.tensor[t], i, to[t]);
  }
}

// Over the first kInputs inputs and kOutputs outputs of a call.
template <int kInputs, int kOutputs = 1, typename F>
void launch_elementwise(const KernelCall& call, F f) {
  Tensors<kInputs> in;
  Tensors<kOutputs> out;
  for (int i = 0; i < kInputs; ++i) in.tensor[i] = input(call, static_cast<size_t>(i));
  for (int i = 0; i < kOutputs; ++i) out.tensor[i] = output(call, static_cast<size_t>(i));
  const int64_t count = call.outputs[0].type.elements();
  launch(call, elementwise<F, kInputs, kOutputs>, blocks_for(count, int64_t{kThreads} * kVector), kThreads, 0,
         f, in, out, count);
}

}  // namespace tenon::cuda
