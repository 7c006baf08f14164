// entry_pool and its gradient: a thread for each token and channel, which does something where the token ends
// a stride. entry_pool_cached: a thread for each stream and channel, over the stream's tokens in order.
#include "backend/cuda/convert.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"

namespace tenon::cuda {
namespace {

struct Pool {
  const float* bias;  // [stride, columns]
  int64_t columns, parts, width, stride;

  // The first position whose token the entry at `position` takes, and the column that channel c takes of it.
  __device__ int64_t first(int64_t position) const {
    const int64_t first = position + 1 - parts * stride;
    return first > 0 ? first : 0;
  }
  __device__ int64_t column(int64_t position, int64_t p, int64_t c) const {
    return p > position - stride ? (parts - 1) * width + c : c;
  }
  __device__ float biased(float gate, int64_t p, int64_t column) const {
    return gate + bias[p % stride * columns + column];
  }
};

// Rows of a pack: x and gate of the position p of the sequence that starts at `begin`.
struct PackedRows {
  Tensor x, gate;
  int64_t begin, columns;
  __device__ int64_t at(int64_t p, int64_t column) const { return (begin + p) * columns + column; }
  __device__ float x_at(int64_t p, int64_t column) const { return load(x, at(p, column)); }
  __device__ float gate_at(int64_t p, int64_t column) const { return load(gate, at(p, column)); }
};

// Rows that a stream keeps: x, then gate.
struct KeptRows {
  Tensor state;
  int64_t stream, rows, columns;
  __device__ int64_t at(int64_t p, int64_t column) const {
    return (stream * rows + p % rows) * 2 * columns + column;
  }
  __device__ float x_at(int64_t p, int64_t column) const { return load(state, at(p, column)); }
  __device__ float gate_at(int64_t p, int64_t column) const { return load(state, at(p, columns + column)); }
};

// The softmax of one channel of the entry at `position`: weight(p) = exp(gate - largest) / total.
struct EntrySoftmax {
  float largest, total, mean;  // mean: the weighted sum of x

  template <typename Rows>
  __device__ static EntrySoftmax of(const Pool& pool, const Rows& rows, int64_t position, int64_t c) {
    EntrySoftmax s{-INFINITY, 0, 0};
    for (int64_t p = pool.first(position); p <= position; ++p) {
      const int64_t column = pool.column(position, p, c);
      s.largest = fmaxf(s.largest, pool.biased(rows.gate_at(p, column), p, column));
    }
    for (int64_t p = pool.first(position); p <= position; ++p) {
      const int64_t column = pool.column(position, p, c);
      const float weight = expf(pool.biased(rows.gate_at(p, column), p, column) - s.largest);
      s.total += weight;
      s.mean += weight * rows.x_at(p, column);
    }
    s.mean /= s.total;
    return s;
  }
};

__global__ void entry_pool(Tensor x, Tensor gate, const int32_t* begin, Tensor out, Pool pool,
                           int64_t tokens) {
  const int64_t i = thread_in_grid();
  if (i >= tokens * pool.width) return;
  const int64_t t = i / pool.width, c = i % pool.width, position = t - begin[t];
  float value = 0;
  if ((position + 1) % pool.stride == 0)
    value = EntrySoftmax::of(pool, PackedRows{x, gate, begin[t], pool.columns}, position, c).mean;
  store(out, i, value);
}

struct PoolGradient {
  Tensor x, gate, dout, dx, dgate;
  const int32_t* begin;
  float* exact_dgate;  // dgate before it is rounded, workspace
  int64_t tokens;
};

// An element of x and gate goes into one entry at most: no two threads write the same.
__global__ void entry_pool_grad(PoolGradient g, Pool pool) {
  const int64_t i = thread_in_grid();
  if (i >= g.tokens * pool.width) return;
  const int64_t t = i / pool.width, c = i % pool.width, position = t - g.begin[t];
  if ((position + 1) % pool.stride != 0) return;
  const PackedRows rows{g.x, g.gate, g.begin[t], pool.columns};
  const EntrySoftmax s = EntrySoftmax::of(pool, rows, position, c);
  const float dout = load(g.dout, i);
  for (int64_t p = pool.first(position); p <= position; ++p) {
    const int64_t column = pool.column(position, p, c), at = rows.at(p, column);
    const float weight = expf(pool.biased(rows.gate_at(p, column), p, column) - s.largest) / s.total;
    const float dgate = dout * weight * (rows.x_at(p, column) - s.mean);
    store(g.dx, at, dout * weight);
    store(g.dgate, at, dgate);
    g.exact_dgate[at] = dgate;
  }
}

// A thread for each element of the bias: its tokens in order.
__global__ void entry_pool_grad_bias(const float* dgate, const int32_t* begin, float* dbias, Pool pool,
                                     int64_t tokens) {
  const int64_t i = thread_in_grid();
  if (i >= pool.stride * pool.columns) return;
  const int64_t within = i / pool.columns, column = i % pool.columns;
  float total = 0;
  for (int64_t t = 0; t < tokens; ++t) {
    if ((t - begin[t]) % pool.stride == within) total += dgate[t * pool.columns + column];
  }
  dbias[i] = total;
}

struct CachedPool {
  Tensor x, gate, out, state;
  const int32_t *stream, *positions;
  int64_t tokens, streams;
};

// One more stream stands for the tokens that have none.
__global__ void entry_pool_cached(CachedPool k, Pool pool) {
  const int64_t i = thread_in_grid();
  if (i >= (k.streams + 1) * pool.width) return;
  const int64_t mine = i / pool.width == k.streams ? -1 : i / pool.width, c = i % pool.width;
  const KeptRows rows{k.state, mine, pool.parts * pool.stride, pool.columns};
  for (int64_t t = 0; t < k.tokens; ++t) {
    if (k.stream[t] != mine) continue;
    float value = 0;
    if (mine >= 0) {
      const int64_t position = k.positions[t];
      for (int64_t column = c; column < pool.columns; column += pool.width) {
        store(k.state, rows.at(position, column), load(k.x, t * pool.columns + column));
        store(k.state, rows.at(position, pool.columns + column), load(k.gate, t * pool.columns + column));
      }
      if ((position + 1) % pool.stride == 0) value = EntrySoftmax::of(pool, rows, position, c).mean;
    }
    store(k.out, t * pool.width + c, value);
  }
}

Pool pool_of(const KernelCall& call) {
  const Shape &x = call.inputs[0].type.shape, &bias = call.inputs[2].type.shape;
  const int64_t parts = call.attrs->integer("parts");
  return {input_as<float>(call, 2), x[1], parts, x[1] / parts, bias[0]};
}

void run(const KernelCall& call) {
  const Pool pool = pool_of(call);
  const int64_t tokens = call.inputs[0].type.shape[0];
  launch(call, entry_pool, blocks_for(tokens * pool.width), kThreads, 0, input(call, 0), input(call, 1),
         input_as<int32_t>(call, 3), output(call, 0), pool, tokens);
}

int64_t exact_bytes(const Type& x) {
  return x.elements() * static_cast<int64_t>(sizeof(float));
}

void run_grad(const KernelCall& call) {
  const Pool pool = pool_of(call);
  const PoolGradient g{.x = input(call, 0),
                       .gate = input(call, 1),
                       .dout = input(call, 4),
                       .dx = output(call, 0),
                       .dgate = output(call, 1),
                       .begin = input_as<int32_t>(call, 3),
                       .exact_dgate = reinterpret_cast<float*>(call.workspace.data()),
                       .tokens = call.inputs[0].type.shape[0]};
  for (size_t i = 0; i < 2; ++i) launch_clear(call, call.outputs[i].data, call.outputs[i].type.bytes());
  launch_clear(call, call.workspace.data(), exact_bytes(call.inputs[0].type));
  launch(call, entry_pool_grad, blocks_for(g.tokens * pool.width), kThreads, 0, g, pool);
  launch(call, entry_pool_grad_bias, blocks_for(pool.stride * pool.columns), kThreads, 0, g.exact_dgate,
         g.begin, output_as<float>(call, 2), pool, g.tokens);
}

void run_cached(const KernelCall& call) {
  const Pool pool = pool_of(call);
  const CachedPool k{.x = input(call, 0),
                     .gate = input(call, 1),
                     .out = output(call, 0),
                     .state = output(call, 1),
                     .stream = input_as<int32_t>(call, 4),
                     .positions = input_as<int32_t>(call, 5),
                     .tokens = call.inputs[0].type.shape[0],
                     .streams = call.inputs[3].type.shape[0]};
  launch(call, entry_pool_cached, blocks_for((k.streams + 1) * pool.width), kThreads, 0, k, pool);
}

int64_t workspace(const OpSite& site, const DeviceFacts&) {
  return exact_bytes(site.inputs[0]);
}

constexpr KernelDef kKernels[] = {
    {.op = "entry_pool", .name = "entry_pool", .serves = serves_plain, .run = run},
    {.op = "entry_pool_grad",
     .name = "entry_pool_grad",
     .serves = serves_plain,
     .workspace_bytes = workspace,
     .run = run_grad},
    {.op = "entry_pool_cached", .name = "entry_pool_cached", .serves = serves_plain, .run = run_cached},
};

}  // namespace

std::span<const KernelDef> entry_pool_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
