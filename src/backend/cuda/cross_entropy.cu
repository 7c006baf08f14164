// linear_cross_entropy and its gradients: the logits of a chunk of tokens at a time by the library, then a
// block a row. Untrained rows are computed and dropped: which they are is not known on the host.
#include <optional>
#include <utility>

#include "backend/cuda/convert.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"
#include "ops/linear_cross_entropy.h"

namespace tenon::cuda {
namespace {

constexpr int64_t kChunkBytes = 256 << 20;  // of logits in f32
constexpr int kRowThreads = 512;

enum class Pass : uint8_t { loss, grad_hidden, grad_weight, loss_and_grad_hidden };

// Sizes, and where things lie in the workspace.
struct Layout {
  int64_t tokens, size, vocab, chunk;
  DType dtype;  // of hidden, in which weight is read
  int64_t weight, logits, gradient, lse, bytes;
};

Layout layout_of(const Type& hidden, const Type& weight, Pass pass) {
  Layout l{
      .tokens = hidden.shape[0], .size = hidden.shape[1], .vocab = weight.shape[0], .dtype = hidden.dtype};
  const int64_t fitting = kChunkBytes / (4 * l.vocab) / 128 * 128;
  l.chunk = std::min(l.tokens, std::max<int64_t>(fitting, 128));
  const auto place = [&](int64_t bytes) {
    const int64_t at = l.bytes;
    l.bytes += round_up(bytes, kArenaAlignment);
    return at;
  };
  const bool halves = l.dtype == DType::bf16;
  l.bytes = 0;
  place(std::max({gemm_workspace_bytes(l.chunk, l.vocab), gemm_workspace_bytes(l.chunk, l.size),
                  gemm_workspace_bytes(l.vocab, l.size)}));
  l.weight = place(weight.dtype == l.dtype ? 0 : Type{l.dtype, weight.shape}.bytes());
  l.logits = place(l.chunk * l.vocab * 4);
  l.gradient = place(pass != Pass::loss && halves ? l.chunk * l.vocab * 2 : 0);
  l.lse = place(pass == Pass::loss_and_grad_hidden ? l.tokens * 4 : 0);
  return l;
}

struct State : KernelState {
  struct Chunk {
    std::optional<Gemm> logits, gradient, more_gradient;  // the last adds to what the one before wrote
  };
  Chunk whole, rest;  // of l.chunk rows, and of those that remain
};

Result<State::Chunk> prepare_chunk(const Layout& l, int64_t rows, Pass pass) {
  State::Chunk chunk;
  if (rows == 0) return Result<State::Chunk>(std::move(chunk));
  ASSIGN_OR_RETURN(
      chunk.logits,
      Gemm::prepare({.m = rows, .n = l.vocab, .k = l.size, .trans_b = true, .operand = l.dtype}));
  if (pass == Pass::loss) return Result<State::Chunk>(std::move(chunk));
  if (pass != Pass::grad_weight) {
    ASSIGN_OR_RETURN(
        chunk.gradient,
        Gemm::prepare({.m = rows, .n = l.size, .k = l.vocab, .operand = l.dtype, .out = l.dtype}));
    return Result<State::Chunk>(std::move(chunk));
  }
  GemmProblem p{.m = l.vocab, .n = l.size, .k = rows, .trans_a = true, .operand = l.dtype};
  ASSIGN_OR_RETURN(chunk.gradient, Gemm::prepare(p));
  p.added = GemmProblem::Added::matrix;
  ASSIGN_OR_RETURN(chunk.more_gradient, Gemm::prepare(p));
  return Result<State::Chunk>(std::move(chunk));
}

template <Pass pass>
Result<std::unique_ptr<KernelState>> prepare(const KernelCall& call) {
  const Layout l = layout_of(call.inputs[0].type, call.inputs[1].type, pass);
  auto state = std::make_unique<State>();
  if (l.tokens > 0) {
    ASSIGN_OR_RETURN(state->whole, prepare_chunk(l, l.chunk, pass));
    ASSIGN_OR_RETURN(state->rest, prepare_chunk(l, l.tokens % l.chunk, pass));
  }
  return std::unique_ptr<KernelState>(std::move(state));
}

struct Head {
  const int32_t* labels;
  float softcap, scale;
  __device__ float capped(float z) const { return softcap > 0 ? softcap * tanhf(z / softcap) : z; }
};

// The largest value and, of equal ones, the lowest index.
struct Largest {
  float value;
  int32_t index;
  __device__ void take(float other, int32_t at) {
    if (other > value || (other == value && at < index)) {
      value = other;
      index = at;
    }
  }
};

__device__ Largest block_largest(Largest mine, Largest* scratch) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const float value = __shfl_xor_sync(kWholeWarp, mine.value, offset);
    const int32_t index = __shfl_xor_sync(kWholeWarp, mine.index, offset);
    mine.take(value, index);
  }
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = mine;
  __syncthreads();
  for (int i = 0; i < static_cast<int>(blockDim.x) / kWarp; ++i)
    mine.take(scratch[i].value, scratch[i].index);
  __syncthreads();
  return mine;
}

__global__ void losses(Head head, const float* logits, int64_t first, int64_t vocab, float* loss, float* lse,
                       int32_t* predicted) {
  __shared__ Largest largest_scratch[kWarp];
  __shared__ float scratch[kWarp];
  const int64_t t = first + blockIdx.x;
  const int32_t label = head.labels[t];
  if (label < 0) {
    if (threadIdx.x == 0) {
      loss[t] = 0;
      lse[t] = 0;
      predicted[t] = -1;
    }
    return;
  }
  if (label >= vocab) stop();
  const float* row = logits + static_cast<int64_t>(blockIdx.x) * vocab;
  Largest largest{-INFINITY, INT32_MAX};
  for (int64_t v = threadIdx.x; v < vocab; v += blockDim.x) {
    largest.take(head.capped(row[v]), static_cast<int32_t>(v));
  }
  largest = block_largest(largest, largest_scratch);
  float total = 0;
  for (int64_t v = threadIdx.x; v < vocab; v += blockDim.x)
    total += expf(head.capped(row[v]) - largest.value);
  total = block_sum(total, scratch);
  if (threadIdx.x != 0) return;
  const double log_sum = static_cast<double>(largest.value) + log(static_cast<double>(total));
  loss[t] = static_cast<float>(log_sum - head.capped(row[label]));
  lse[t] = static_cast<float>(log_sum);
  predicted[t] = largest.index;
}

// The gradient of one token's logits.
struct TokenGradient {
  Head head;
  int32_t label;
  float weight, lse;

  __device__ float operator()(float logit, int v) const {
    if (label < 0) return 0;
    const float z = head.capped(logit);
    const float slope = head.softcap > 0 ? 1 - (z / head.softcap) * (z / head.softcap) : 1.0f;
    return weight * (expf(z - lse) - (v == label ? 1.0f : 0.0f)) * slope;
  }
};

// The gradient of the logits of a chunk, rounded to the dtype that it multiplies in (in f32, it may be their
// place).
__global__ void logit_gradients(Head head, Tensor logits, const float* lse, const float* dloss, int64_t first,
                                int vocab, Tensor out) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * kVector;
  if (column >= vocab) return;
  const int64_t t = first + blockIdx.y, at = static_cast<int64_t>(blockIdx.y) * vocab + column;
  const TokenGradient gradient{head, head.labels[t], dloss[t] * head.scale, lse[t]};
  if (vocab % kVector == 0) {
    float values[kVector];
    load_vector(logits, at, values);
#pragma unroll
    for (int e = 0; e < kVector; ++e) values[e] = gradient(values[e], column + e);
    store_vector(out, at, values);
    return;
  }
  for (int e = 0; e < kVector && column + e < vocab; ++e) {
    store(out, at + e, gradient(load(logits, at + e), column + e));
  }
}

// A call as its chunks see it.
struct Run {
  const KernelCall& call;
  Layout l;
  Head head;
  float scale;
  const std::byte* weight;

  Run(const KernelCall& c, Pass pass) : call(c), l(layout_of(c.inputs[0].type, c.inputs[1].type, pass)) {
    const LinearCrossEntropyOptions options = linear_cross_entropy_options(*c.attrs);
    scale = static_cast<float>(options.logit_scale);
    head = {input_as<int32_t>(c, 2), static_cast<float>(options.softcap), scale};
    weight = c.inputs[1].data;
    if (c.inputs[1].type.dtype == l.dtype) return;
    launch_convert(c, input(c, 1), {at(l.weight), l.dtype}, c.inputs[1].type.elements());
    weight = at(l.weight);
  }
  std::byte* at(int64_t offset) const { return call.workspace.data() + offset; }
  // Row `token` of a tensor laid out as hidden.
  std::byte* hidden_in(std::byte* data, int64_t token) const {
    return data + token * l.size * dtype_info(l.dtype).block_bytes;
  }
  const std::byte* hidden(int64_t token) const { return hidden_in(call.inputs[0].data, token); }
  float* logits() const { return reinterpret_cast<float*>(at(l.logits)); }

  // Calls body(first token, rows, the prepared products) for each chunk, its logits computed.
  template <typename Body>
  void each_chunk(Body body) const {
    const auto* state = static_cast<const State*>(call.state);
    for (int64_t first = 0; first < l.tokens; first += l.chunk) {
      const int64_t rows = std::min(l.chunk, l.tokens - first);
      const State::Chunk& chunk = rows == l.chunk ? state->whole : state->rest;
      chunk.logits->run(call, hidden(first), weight, nullptr, at(l.logits), scale, at(0));
      body(first, rows, chunk);
    }
  }
  // The gradient of a chunk's logits.
  const std::byte* gradient(int64_t first, int64_t rows, const float* lse, const float* dloss) const {
    const Tensor out{at(l.dtype == DType::f32 ? l.logits : l.gradient), l.dtype};
    launch(call, logit_gradients,
           dim3(blocks_for(l.vocab, int64_t{kThreads} * kVector), static_cast<unsigned>(rows)), kThreads, 0,
           head, Tensor{at(l.logits), DType::f32}, lse, dloss, first, static_cast<int>(l.vocab), out);
    return out.data;
  }
};

void launch_losses(const Run& run, int64_t first, int64_t rows, float* loss, float* lse, int32_t* predicted) {
  launch(run.call, losses, static_cast<unsigned>(rows), kRowThreads, 0, run.head,
         static_cast<const float*>(run.logits()), first, run.l.vocab, loss, lse, predicted);
}

void run_loss(const KernelCall& call) {
  const Run run(call, Pass::loss);
  run.each_chunk([&](int64_t first, int64_t rows, const State::Chunk&) {
    launch_losses(run, first, rows, output_as<float>(call, 0), output_as<float>(call, 1),
                  output_as<int32_t>(call, 2));
  });
}

void run_loss_and_grad_hidden(const KernelCall& call) {
  const Run run(call, Pass::loss_and_grad_hidden);
  float* lse = reinterpret_cast<float*>(run.at(run.l.lse));
  run.each_chunk([&](int64_t first, int64_t rows, const State::Chunk& chunk) {
    launch_losses(run, first, rows, output_as<float>(call, 1), lse, output_as<int32_t>(call, 2));
    const std::byte* dz = run.gradient(first, rows, lse, input_as<float>(call, 3));
    chunk.gradient->run(call, dz, run.weight, nullptr, run.hidden_in(call.outputs[0].data, first), 1.0f,
                        run.at(0));
  });
}

void run_grad_hidden(const KernelCall& call) {
  const Run run(call, Pass::grad_hidden);
  run.each_chunk([&](int64_t first, int64_t rows, const State::Chunk& chunk) {
    const std::byte* dz = run.gradient(first, rows, input_as<float>(call, 3), input_as<float>(call, 4));
    chunk.gradient->run(call, dz, run.weight, nullptr, run.hidden_in(call.outputs[0].data, first), 1.0f,
                        run.at(0));
  });
}

void run_grad_weight(const KernelCall& call) {
  const Run run(call, Pass::grad_weight);
  std::byte* out = call.outputs[0].data;
  if (run.l.tokens == 0) return launch_clear(call, out, call.outputs[0].type.bytes());
  run.each_chunk([&](int64_t first, int64_t rows, const State::Chunk& chunk) {
    const std::byte* dz = run.gradient(first, rows, input_as<float>(call, 3), input_as<float>(call, 4));
    const Gemm& gemm = first == 0 ? *chunk.gradient : *chunk.more_gradient;
    gemm.run(call, dz, run.hidden(first), out, out, 1.0f, run.at(0));
  });
}

template <Pass pass>
int64_t workspace(const OpSite& site, const DeviceFacts&) {
  return layout_of(site.inputs[0], site.inputs[1], pass).bytes;
}

bool serves(const OpSite& site, const DeviceFacts& facts) {
  const DType hidden = site.inputs[0].dtype;
  const bool fits = site.inputs[0].shape[1] > 0 && (hidden == DType::f32 || hidden == DType::bf16);
  return fits && serves_number<1>(site, facts);
}

constexpr KernelDef kKernels[] = {
    {.op = "linear_cross_entropy",
     .name = "linear_cross_entropy",
     .serves = serves,
     .workspace_bytes = workspace<Pass::loss>,
     .prepare = prepare<Pass::loss>,
     .run = run_loss},
    {.op = "linear_cross_entropy_grad_hidden",
     .name = "linear_cross_entropy_grad_hidden",
     .serves = serves,
     .workspace_bytes = workspace<Pass::grad_hidden>,
     .prepare = prepare<Pass::grad_hidden>,
     .run = run_grad_hidden},
    {.op = "linear_cross_entropy_with_grad",
     .name = "linear_cross_entropy_with_grad",
     .serves = serves,
     .workspace_bytes = workspace<Pass::loss_and_grad_hidden>,
     .prepare = prepare<Pass::loss_and_grad_hidden>,
     .run = run_loss_and_grad_hidden},
    {.op = "linear_cross_entropy_grad_weight",
     .name = "linear_cross_entropy_grad_weight",
     .serves = serves,
     .workspace_bytes = workspace<Pass::grad_weight>,
     .prepare = prepare<Pass::grad_weight>,
     .run = run_grad_weight},
};

}  // namespace

std::span<const KernelDef> cross_entropy_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
