// Residual streams of a token: mix_rows with its gradient, sinkhorn with its gradient (a thread a matrix).
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"

namespace tenon::cuda {
namespace {

struct Mix {
  int64_t tokens, n, m, width;
  bool trans;
};

__global__ void mix_rows(Tensor x, const float* weights, Tensor out, Mix s) {
  const int64_t i = thread_in_grid();
  if (i >= s.tokens * s.m * s.width) return;
  const int64_t t = i / (s.m * s.width), row = i / s.width % s.m, c = i % s.width;
  const float* const w = weights + t * s.m * s.n;
  float total = 0;
  for (int64_t j = 0; j < s.n; ++j)
    total += w[s.trans ? j * s.m + row : row * s.n + j] * load(x, (t * s.n + j) * s.width + c);
  store(out, i, total);
}

// A warp for each product of rows.
__global__ void mix_rows_grad_weights(Tensor dout, Tensor x, float* out, Mix s) {
  const int64_t i = thread_in_grid() / kWarp;
  if (i >= s.tokens * s.m * s.n) return;
  const int64_t left = i / s.n * s.width, right = (i / (s.m * s.n) * s.n + i % s.n) * s.width;
  float total = 0;
  for (int64_t c = threadIdx.x % kWarp; c < s.width; c += kWarp)
    total += load(dout, left + c) * load(x, right + c);
  total = warp_sum(total);
  if (threadIdx.x % kWarp == 0) out[i] = total;
}

void run_mix(const KernelCall& call) {
  const Shape &x = call.inputs[0].type.shape, &out = call.outputs[0].type.shape;
  const Mix s{x[0], x[1], out[1], x[2], call.attrs->flag("trans")};
  launch(call, mix_rows, blocks_for(out.elements()), kThreads, 0, input(call, 0), input_as<float>(call, 1),
         output(call, 0), s);
}

void run_mix_grad_weights(const KernelCall& call) {
  const Shape &dout = call.inputs[0].type.shape, &x = call.inputs[1].type.shape;
  const Mix s{x[0], x[1], dout[1], x[2], false};
  launch(call, mix_rows_grad_weights, blocks_for(s.tokens * s.m * s.n, kThreads / kWarp), kThreads, 0,
         input(call, 0), input(call, 1), output_as<float>(call, 0), s);
}

// Matrices [n, n] of several rows, element by element: neighbouring threads read neighbouring addresses.
struct Matrices {
  float* data;
  int64_t rows, n;
  __device__ float& at(int64_t row, int64_t element) const { return data[element * rows + row]; }
};

// Element i of a line of an [n, n] matrix.
__device__ inline int64_t element_of(int64_t n, bool columns, int64_t line, int64_t i) {
  return columns ? i * n + line : line * n + i;
}

struct Sinkhorn {
  int64_t rows, n, divisions;  // after the softmax: columns first, then rows and columns in turn
  float eps;
  static __device__ bool divides_columns(int64_t division) { return division % 2 == 0; }
};

// Rows of softmaxes plus eps.
__device__ inline void softmax_rows(const Sinkhorn& s, const float* x, const Matrices& out, int64_t row) {
  for (int64_t r = 0; r < s.n; ++r) {
    float largest = -INFINITY, total = 0;
    for (int64_t i = 0; i < s.n; ++i) largest = fmaxf(largest, x[r * s.n + i]);
    for (int64_t i = 0; i < s.n; ++i) total += expf(x[r * s.n + i] - largest);
    for (int64_t i = 0; i < s.n; ++i)
      out.at(row, r * s.n + i) = expf(x[r * s.n + i] - largest) / total + s.eps;
  }
}

__device__ inline float line_sum(const Sinkhorn& s, const Matrices& m, int64_t row, bool columns,
                                 int64_t line) {
  float total = s.eps;
  for (int64_t i = 0; i < s.n; ++i) total += m.at(row, element_of(s.n, columns, line, i));
  return total;
}

// The lines of `from`, divided by their sums plus eps; `to` may be `from`.
__device__ inline void divide_lines(const Sinkhorn& s, const Matrices& from, const Matrices& to, int64_t row,
                                    bool columns) {
  for (int64_t line = 0; line < s.n; ++line) {
    const float by = line_sum(s, from, row, columns, line);
    for (int64_t i = 0; i < s.n; ++i) {
      const int64_t at = element_of(s.n, columns, line, i);
      to.at(row, at) = from.at(row, at) / by;
    }
  }
}

__global__ void sinkhorn(const float* x, float* out, float* scratch, Sinkhorn s) {
  const int64_t row = thread_in_grid();
  if (row >= s.rows) return;
  const int64_t size = s.n * s.n;
  const Matrices m{scratch, s.rows, s.n};
  softmax_rows(s, x + row * size, m, row);
  for (int64_t i = 0; i < s.divisions; ++i) divide_lines(s, m, m, row, Sinkhorn::divides_columns(i));
  for (int64_t i = 0; i < size; ++i) out[row * size + i] = m.at(row, i);
}

// scratch: the matrices before each division, then the gradient.
__global__ void sinkhorn_grad(const float* x, const float* dout, float* dx, float* scratch, Sinkhorn s) {
  const int64_t row = thread_in_grid();
  if (row >= s.rows) return;
  const int64_t size = s.n * s.n;
  const auto step = [&](int64_t i) { return Matrices{scratch + i * size * s.rows, s.rows, s.n}; };
  softmax_rows(s, x + row * size, step(0), row);
  for (int64_t i = 1; i < s.divisions; ++i)
    divide_lines(s, step(i - 1), step(i), row, Sinkhorn::divides_columns(i - 1));
  const Matrices d = step(s.divisions);
  for (int64_t i = 0; i < size; ++i) d.at(row, i) = dout[row * size + i];
  for (int64_t division = s.divisions - 1; division >= 0; --division) {
    const bool columns = Sinkhorn::divides_columns(division);
    const Matrices before = step(division);
    for (int64_t line = 0; line < s.n; ++line) {
      const float by = line_sum(s, before, row, columns, line);
      float dot = 0;
      for (int64_t i = 0; i < s.n; ++i) {
        const int64_t at = element_of(s.n, columns, line, i);
        dot += d.at(row, at) * before.at(row, at);
      }
      for (int64_t i = 0; i < s.n; ++i) {
        float& gradient = d.at(row, element_of(s.n, columns, line, i));
        gradient = (gradient - dot / by) / by;
      }
    }
  }
  const Matrices p = step(0);
  Sinkhorn softmax = s;
  softmax.eps = 0;
  softmax_rows(softmax, x + row * size, p, row);
  for (int64_t r = 0; r < size; r += s.n) {
    float dot = 0;
    for (int64_t i = r; i < r + s.n; ++i) dot += d.at(row, i) * p.at(row, i);
    for (int64_t i = r; i < r + s.n; ++i) dx[row * size + i] = p.at(row, i) * (d.at(row, i) - dot);
  }
}

Sinkhorn sinkhorn_of(const OpSite& site) {
  const Shape& x = site.inputs[0].shape;
  return {x[0], x[1], 2 * site.attrs.integer("iterations") - 1, static_cast<float>(site.attrs.real("eps"))};
}

Sinkhorn sinkhorn_of(const KernelCall& call) {
  const Shape& x = call.inputs[0].type.shape;
  return {x[0], x[1], 2 * call.attrs->integer("iterations") - 1, static_cast<float>(call.attrs->real("eps"))};
}

constexpr int kMatricesPerBlock = 64;  // few: a token is one matrix, and all multiprocessors shall have some

void run_sinkhorn(const KernelCall& call) {
  const Sinkhorn s = sinkhorn_of(call);
  launch(call, sinkhorn, blocks_for(s.rows, kMatricesPerBlock), kMatricesPerBlock, 0,
         input_as<float>(call, 0), output_as<float>(call, 0), reinterpret_cast<float*>(call.workspace.data()),
         s);
}

void run_sinkhorn_grad(const KernelCall& call) {
  const Sinkhorn s = sinkhorn_of(call);
  launch(call, sinkhorn_grad, blocks_for(s.rows, kMatricesPerBlock), kMatricesPerBlock, 0,
         input_as<float>(call, 0), input_as<float>(call, 1), output_as<float>(call, 0),
         reinterpret_cast<float*>(call.workspace.data()), s);
}

int64_t workspace(const OpSite& site, const DeviceFacts&) {
  return site.inputs[0].bytes();
}

int64_t workspace_grad(const OpSite& site, const DeviceFacts&) {
  return (sinkhorn_of(site).divisions + 1) * site.inputs[0].bytes();
}

constexpr KernelDef kKernels[] = {
    {.op = "mix_rows", .name = "mix_rows", .serves = serves_plain, .run = run_mix},
    {.op = "mix_rows_grad_weights",
     .name = "mix_rows_grad_weights_warps",
     .serves = serves_plain,
     .run = run_mix_grad_weights},
    {.op = "sinkhorn",
     .name = "sinkhorn",
     .serves = serves_plain,
     .workspace_bytes = workspace,
     .run = run_sinkhorn},
    {.op = "sinkhorn_grad",
     .name = "sinkhorn_grad",
     .serves = serves_plain,
     .workspace_bytes = workspace_grad,
     .run = run_sinkhorn_grad},
};

}  // namespace

std::span<const KernelDef> stream_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
