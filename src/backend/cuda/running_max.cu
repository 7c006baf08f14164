// running_max over packed sequences, running_max_cached over the states of streams, and the gradient: a
// thread a column, tokens one after another.
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"

namespace tenon::cuda {
namespace {

struct Terms {
  const float *decay, *value;
  float* out;
  int64_t tokens, n;
};

Terms terms_of(const KernelCall& call) {
  const Shape& decay = call.inputs[0].type.shape;
  return {input_as<float>(call, 0), input_as<float>(call, 1), output_as<float>(call, 0), decay[0], decay[1]};
}

// Writes a token's out and gives m after it.
__device__ inline float take_token(const Terms& p, int64_t t, int64_t i, float m) {
  const float carried = m + p.decay[t * p.n + i];
  m = fmaxf(carried, p.value[t * p.n + i]);
  p.out[2 * t * p.n + i] = carried;
  p.out[(2 * t + 1) * p.n + i] = m;
  return m;
}

__global__ void running_max(Terms p, const int32_t* begin) {
  const int64_t i = thread_in_grid();
  if (i >= p.n) return;
  float m = 0;
  for (int64_t t = 0; t < p.tokens; ++t) m = take_token(p, t, i, begin[t] == t ? 0.0f : m);
}

// A thread a column of a stream; one more stream for tokens that have none.
__global__ void running_max_cached(Terms p, const int32_t* stream, const int32_t* positions, float* state,
                                   int64_t streams) {
  const int64_t place = thread_in_grid();
  if (place >= (streams + 1) * p.n) return;
  const int64_t mine = place / p.n == streams ? -1 : place / p.n, i = place % p.n;
  float m = mine < 0 ? 0.0f : state[mine * p.n + i];
  for (int64_t t = 0; t < p.tokens; ++t) {
    if (stream[t] != mine) continue;
    if (mine < 0) {
      p.out[2 * t * p.n + i] = p.out[(2 * t + 1) * p.n + i] = 0;
    } else {
      m = take_token(p, t, i, positions[t] == 0 ? 0.0f : m);
    }
  }
  if (mine >= 0) state[mine * p.n + i] = m;
}

__global__ void running_max_grad(const float* out, const float* dout, const int32_t* begin, float* d_decay,
                                 float* d_value, int64_t tokens, int64_t n) {
  const int64_t i = thread_in_grid();
  if (i >= n) return;
  float later = 0;  // of m, from the tokens after
  for (int64_t t = tokens; t-- > 0;) {
    const int64_t carried = 2 * t * n + i, m = carried + n;
    const float total = dout[m] + later;
    const bool from_value = out[m] > out[carried];
    const float of_carried = dout[carried] + (from_value ? 0.0f : total);
    d_value[t * n + i] = from_value ? total : 0.0f;
    d_decay[t * n + i] = of_carried;
    later = begin[t] == t ? 0.0f : of_carried;
  }
}

void run(const KernelCall& call) {
  const Terms p = terms_of(call);
  launch(call, running_max, blocks_for(p.n, kWarp), kWarp, 0, p, input_as<int32_t>(call, 2));
}

void run_cached(const KernelCall& call) {
  const Terms p = terms_of(call);
  const int64_t streams = call.inputs[2].type.shape[0];
  launch(call, running_max_cached, blocks_for((streams + 1) * p.n, kWarp), kWarp, 0, p,
         input_as<int32_t>(call, 3), input_as<int32_t>(call, 4), output_as<float>(call, 1), streams);
}

void run_grad(const KernelCall& call) {
  const Shape& out = call.inputs[0].type.shape;
  launch(call, running_max_grad, blocks_for(out[2], kWarp), kWarp, 0, input_as<float>(call, 0),
         input_as<float>(call, 1), input_as<int32_t>(call, 2), output_as<float>(call, 0),
         output_as<float>(call, 1), out[0], out[2]);
}

constexpr KernelDef kKernels[] = {
    {.op = "running_max", .name = "running_max", .serves = serves_plain, .run = run},
    {.op = "running_max_cached", .name = "running_max_cached", .serves = serves_plain, .run = run_cached},
    {.op = "running_max_grad", .name = "running_max_grad", .serves = serves_plain, .run = run_grad},
};

}  // namespace

std::span<const KernelDef> running_max_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
