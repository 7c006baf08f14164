// cast, dropout, fill, zero and adamw.
#include "backend/cuda/convert.h"
#include "backend/cuda/elementwise.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/quantised.h"
#include "ops/philox.h"

namespace tenon::cuda {
namespace {

struct Copy {
  __device__ void operator()(const float (&x)[1], float (&y)[1], int64_t) const { y[0] = x[0]; }
};

struct AddRow {
  const float* row;
  int64_t columns;
  __device__ void operator()(const float (&x)[1], float (&y)[1], int64_t i) const {
    y[0] = x[0] + row[i % columns];
  }
};

__global__ void dequantise(Tensor from, Tensor to, int64_t count) {
  const int64_t i = thread_in_grid();
  if (i < count) store(to, i, load_number(from, i));
}

// Four elements a thread: the four words of one counter.
__global__ void dropout(Tensor x, Tensor out, const int32_t* seed, uint64_t stream, uint64_t threshold,
                        float scale, int64_t count) {
  const int64_t block = thread_in_grid();
  if (block * 4 >= count) return;
  const auto words = philox_block({static_cast<uint32_t>(seed[0]), static_cast<uint32_t>(seed[1])}, stream,
                                  static_cast<uint64_t>(block));
  for (int e = 0; e < 4 && block * 4 + e < count; ++e) {
    const bool kept = words[static_cast<size_t>(e)] >= threshold;
    store(out, block * 4 + e, kept ? load(x, block * 4 + e) * scale : 0.0f);
  }
}

void run_dropout(const KernelCall& call) {
  const double rate = call.attrs->real("rate");
  const int64_t count = call.outputs[0].type.elements();
  launch(call, dropout, blocks_for(count, 4 * kThreads), kThreads, 0, input(call, 0), output(call, 0),
         input_as<int32_t>(call, 1), static_cast<uint64_t>(call.attrs->integer("stream")),
         dropout_threshold(rate), static_cast<float>(1 / (1 - rate)), count);
}

__global__ void fill(const float* value, Tensor out, int64_t count) {
  const int64_t i = thread_in_grid();
  if (i < count) store(out, i, *value);
}

__global__ void clear(std::byte* data, int64_t bytes) {
  const int64_t at = thread_in_grid() * 4;
  if (at + 4 <= bytes) {
    *reinterpret_cast<uint32_t*>(data + at) = 0;
  } else {
    for (int64_t i = at; i < bytes; ++i) data[i] = std::byte{0};
  }
}

struct AdamW {
  const float *grad_norm, *hyper;
  double max_norm, weight_decay;
  float beta1, rest1, beta2, rest2, eps;

  // x: param, grad, m, v; y: param, m, v.
  __device__ void operator()(const float (&x)[4], float (&y)[3], int64_t) const {
    if (!(fabsf(*grad_norm) < INFINITY)) {
      y[0] = x[0];
      y[1] = x[2];
      y[2] = x[3];
      return;
    }
    const double lr = hyper[0];
    const double clip = max_norm > 0 ? fmin(1.0, max_norm / (static_cast<double>(*grad_norm) + 1e-6)) : 1.0;
    const float g = static_cast<float>(clip) * x[1];
    const float m = beta1 * x[2] + rest1 * g;
    const float v = beta2 * x[3] + rest2 * g * g;
    const float denominator = sqrtf(v / hyper[2]) + eps;
    y[0] = static_cast<float>(1 - lr * weight_decay) * x[0] - hyper[0] * (m / hyper[1]) / denominator;
    y[1] = m;
    y[2] = v;
  }
};

void run_adamw(const KernelCall& call) {
  const Attrs& a = *call.attrs;
  const auto narrow = [](double value) { return static_cast<float>(value); };
  launch_elementwise<4, 3>(
      call, AdamW{input_as<float>(call, 4), input_as<float>(call, 5), a.real("max_norm"),
                  a.real("weight_decay"), narrow(a.real("beta1")), narrow(1 - a.real("beta1")),
                  narrow(a.real("beta2")), narrow(1 - a.real("beta2")), narrow(a.real("eps"))});
}

constexpr KernelDef kKernels[] = {
    {.op = "cast",
     .name = "cast",
     .serves = serves_number<0>,
     .run =
         [](const KernelCall& call) {
           launch_convert(call, input(call, 0), output(call, 0), call.outputs[0].type.elements());
         }},
    {.op = "detach",
     .name = "detach",
     .serves = serves_plain,
     .run =
         [](const KernelCall& call) {
           launch_convert(call, input(call, 0), output(call, 0), call.outputs[0].type.elements());
         }},
    {.op = "dropout", .name = "dropout", .serves = serves_plain, .run = run_dropout},
    {.op = "fill",
     .name = "fill",
     .serves = serves_plain,
     .run =
         [](const KernelCall& call) {
           const int64_t count = call.outputs[0].type.elements();
           launch(call, fill, blocks_for(count), kThreads, 0, input_as<float>(call, 0), output(call, 0),
                  count);
         }},
    {.op = "zero",
     .name = "zero",
     .serves = serves_plain,
     .run =
         [](const KernelCall& call) {
           launch_clear(call, call.outputs[0].data, call.outputs[0].type.bytes());
         }},
    {.op = "adamw", .name = "adamw", .serves = serves_plain, .run = run_adamw},
};

}  // namespace

void launch_convert(const KernelCall& call, const Tensor& from, const Tensor& to, int64_t count) {
  if (!is_plain(from.dtype)) {
    launch(call, dequantise, blocks_for(count), kThreads, 0, from, to, count);
    return;
  }
  launch(call, elementwise<Copy, 1, 1>, blocks_for(count, int64_t{kThreads} * kVector), kThreads, 0, Copy{},
         Tensors<1>{{from}}, Tensors<1>{{to}}, count);
}

void launch_clear(const KernelCall& call, std::byte* data, int64_t bytes) {
  launch(call, clear, blocks_for(bytes, 4 * kThreads), kThreads, 0, data, bytes);
}

void launch_add_row(const KernelCall& call, const Tensor& x, const float* row, const Tensor& out,
                    int64_t rows, int64_t columns) {
  const int64_t count = rows * columns;
  launch(call, elementwise<AddRow, 1, 1>, blocks_for(count, int64_t{kThreads} * kVector), kThreads, 0,
         AddRow{row, columns}, Tensors<1>{{x}}, Tensors<1>{{out}}, count);
}

std::span<const KernelDef> update_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
