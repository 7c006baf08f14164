// Loops of a block over one row of several tensors, kVector elements a thread at a time where the row allows
// it.
#pragma once

#include "backend/cuda/launch.h"

namespace tenon::cuda {

// Where a row begins in each of kCount tensors.
template <int kCount>
struct RowOf {
  Tensor tensor[kCount];
  int64_t at[kCount];
};

// Calls body(index in the row, values) once for each element, by threads in turns.
template <int kCount, typename Body>
__device__ inline void each_of_row(const RowOf<kCount>& row, int64_t n, Body body) {
  if (n % kVector == 0) {
    for (int64_t i = threadIdx.x * kVector; i < n; i += blockDim.x * kVector) {
      float x[kCount][kVector];
#pragma unroll
      for (int t = 0; t < kCount; ++t) load_vector(row.tensor[t], row.at[t] + i, x[t]);
#pragma unroll
      for (int e = 0; e < kVector; ++e) {
        float values[kCount];
#pragma unroll
        for (int t = 0; t < kCount; ++t) values[t] = x[t][e];
        body(i + e, values);
      }
    }
    return;
  }
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    float values[kCount];
    for (int t = 0; t < kCount; ++t) values[t] = load(row.tensor[t], row.at[t] + i);
    body(i, values);
  }
}

// out[at + i] = f(values at i). Each element is read before it is written, by the same thread.
template <int kCount, typename F>
__device__ inline void map_row(const RowOf<kCount>& row, int64_t n, const Tensor& out, int64_t at, F f) {
  if (n % kVector == 0) {
    for (int64_t i = threadIdx.x * kVector; i < n; i += blockDim.x * kVector) {
      float x[kCount][kVector], y[kVector];
#pragma unroll
      for (int t = 0; t < kCount; ++t) load_vector(row.tensor[t], row.at[t] + i, x[t]);
#pragma unroll
      for (int e = 0; e < kVector; ++e) {
        float values[kCount];
#pragma unroll
        for (int t = 0; t < kCount; ++t) values[t] = x[t][e];
        y[e] = f(values);
      }
      store_vector(out, at + i, y);
    }
    return;
  }
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    float values[kCount];
    for (int t = 0; t < kCount; ++t) values[t] = load(row.tensor[t], row.at[t] + i);
    store(out, at + i, f(values));
  }
}

}  // namespace tenon::cuda
