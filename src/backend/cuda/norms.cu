// rms_norm with its gradients, normalise and normalise_grad: a block a row, or a warp where rows are short.
#include <string_view>

#include "backend/cuda/column_sums.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/rows.h"
#include "base/check.h"
#include "ops/normalise.h"

namespace tenon::cuda {
namespace {

// Rows by blocks of `threads`.
struct Rows {
  int64_t count, columns;
  unsigned threads() const { return columns <= 256 ? kWarp : kThreads; }
};

Rows rows_in(const KernelCall& call) {
  const Shape& x = call.inputs[0].type.shape;
  return {rows_of(x), x[-1]};
}

template <typename... Parameters, typename... Arguments>
void launch_rows(const KernelCall& call, void (*kernel)(Parameters...), const Rows& rows,
                 Arguments... arguments) {
  launch(call, kernel, static_cast<unsigned>(rows.count), rows.threads(), 0, arguments...);
}

// 1 / sqrt(mean(x^2) + eps) of a row.
__device__ float inverse_rms(const Tensor& x, int64_t at, int64_t n, float eps, float* scratch) {
  float squares = 0;
  each_of_row<1>({{x}, {at}}, n, [&](int64_t, const float(&v)[1]) { squares += v[0] * v[0]; });
  return 1 / sqrtf(block_sum(squares, scratch) / static_cast<float>(n) + eps);
}

__global__ void rms_norm(Tensor x, Tensor weight, Tensor out, int64_t n, float eps, float offset) {
  __shared__ float scratch[kWarp];
  const int64_t at = blockIdx.x * n;
  const float r = inverse_rms(x, at, n, eps, scratch);
  map_row<2>({{x, weight}, {at, 0}}, n, out, at,
             [&](const float(&v)[2]) { return v[0] * r * (v[1] + offset); });
}

__global__ void rms_norm_grad_input(Tensor x, Tensor weight, Tensor dy, Tensor dx, int64_t n, float eps,
                                    float offset) {
  __shared__ float scratch[kWarp];
  const int64_t at = blockIdx.x * n;
  float squares = 0, along = 0;
  const RowOf<3> row{{x, weight, dy}, {at, 0, at}};
  each_of_row(row, n, [&](int64_t, const float(&v)[3]) {
    squares += v[0] * v[0];
    along += v[2] * (v[1] + offset) * v[0];
  });
  const float r = 1 / sqrtf(block_sum(squares, scratch) / static_cast<float>(n) + eps);
  along = block_sum(along, scratch) / static_cast<float>(n) * r * r;
  map_row(row, n, dx, at, [&](const float(&v)[3]) { return r * (v[2] * (v[1] + offset) - v[0] * along); });
}

__global__ void inverse_rms_of_rows(Tensor x, float* out, int64_t n, float eps) {
  __shared__ float scratch[kWarp];
  const float r = inverse_rms(x, blockIdx.x * n, n, eps, scratch);
  if (threadIdx.x == 0) out[blockIdx.x] = r;
}

struct WeightGradient {
  Tensor x, dy;
  const float* inverse_rms;
  int64_t columns;
  __device__ float operator()(int64_t row, int64_t column) const {
    const int64_t at = row * columns + column;
    return load(dy, at) * load(x, at) * inverse_rms[row];
  }
};

float eps_of(const KernelCall& call) {
  return static_cast<float>(call.attrs->real("eps"));
}
float offset_of(const KernelCall& call) {
  return static_cast<float>(call.attrs->real("weight_offset"));
}

void run_rms_norm(const KernelCall& call) {
  const Rows rows = rows_in(call);
  launch_rows(call, rms_norm, rows, input(call, 0), input(call, 1), output(call, 0), rows.columns,
              eps_of(call), offset_of(call));
}

void run_rms_norm_grad_input(const KernelCall& call) {
  const Rows rows = rows_in(call);
  launch_rows(call, rms_norm_grad_input, rows, input(call, 0), input(call, 1), input(call, 2),
              output(call, 0), rows.columns, eps_of(call), offset_of(call));
}

int64_t row_values_bytes(int64_t rows) {
  return round_up(rows * static_cast<int64_t>(sizeof(float)), kArenaAlignment);
}

void run_rms_norm_grad_weight(const KernelCall& call) {
  const Rows rows = rows_in(call);
  float* inverse = reinterpret_cast<float*>(call.workspace.data());
  launch_rows(call, inverse_rms_of_rows, rows, input(call, 0), inverse, rows.columns, eps_of(call));
  launch_column_sums(call, WeightGradient{input(call, 0), input(call, 1), inverse, rows.columns}, rows.count,
                     rows.columns, row_values_bytes(rows.count));
}

int64_t rms_norm_grad_weight_workspace(const OpSite& site, const DeviceFacts&) {
  const Shape& x = site.inputs[0].shape;
  return row_values_bytes(rows_of(x)) + column_sums_workspace(rows_of(x), x[-1]);
}

// y = (x - mean) * factor, or softmax's exp(x - largest) * factor.
struct RowScale {
  NormaliseKind kind;
  float mean, largest, factor;
  __device__ float operator()(float x) const {
    return kind == NormaliseKind::softmax ? expf(x - largest) * factor : (x - mean) * factor;
  }
};

__device__ RowScale row_scale(NormaliseKind kind, float eps, const Tensor& x, int64_t at, int64_t n,
                              float* scratch) {
  RowScale s{kind, 0, 0, 1};
  const auto count = static_cast<float>(n);
  float total = 0;
  if (kind == NormaliseKind::softmax) {
    float largest = -INFINITY;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) largest = fmaxf(largest, load(x, at + i));
    s.largest = block_max(largest, scratch);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) total += expf(load(x, at + i) - s.largest);
    s.factor = 1 / block_sum(total, scratch);
    return s;
  }
  if (kind == NormaliseKind::layer || kind == NormaliseKind::sum) {
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) total += load(x, at + i);
    total = block_sum(total, scratch);
  }
  if (kind == NormaliseKind::sum) {
    s.factor = 1 / (total + eps);
    return s;
  }
  if (kind == NormaliseKind::layer) s.mean = total / count;
  float squares = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const float value = load(x, at + i) - s.mean;
    squares += value * value;
  }
  squares = block_sum(squares, scratch);
  s.factor = 1 / sqrtf((kind == NormaliseKind::l2 ? squares : squares / count) + eps);
  return s;
}

__global__ void normalise(NormaliseKind kind, float eps, Tensor x, Tensor out, int64_t n) {
  __shared__ float scratch[kWarp];
  const int64_t at = blockIdx.x * n;
  const RowScale s = row_scale(kind, eps, x, at, n, scratch);
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) store(out, at + i, s(load(x, at + i)));
}

// dx as ops/normalise.cc derives it from y and the row's factor.
__global__ void normalise_grad(NormaliseKind kind, float eps, Tensor x, Tensor dy, Tensor dx, int64_t n) {
  __shared__ float scratch[kWarp];
  const int64_t at = blockIdx.x * n;
  const RowScale s = row_scale(kind, eps, x, at, n, scratch);
  const auto count = static_cast<float>(n);
  float along = 0, total = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const float g = load(dy, at + i);
    along += g * s(load(x, at + i));
    total += g;
  }
  along = block_sum(along, scratch);
  total = block_sum(total, scratch);
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    const float g = load(dy, at + i), y = s(load(x, at + i));
    float value = 0;
    if (kind == NormaliseKind::softmax) value = y * (g - along);
    if (kind == NormaliseKind::sum) value = s.factor * (g - along);
    if (kind == NormaliseKind::l2) value = s.factor * (g - y * along);
    if (kind == NormaliseKind::rms) value = s.factor * (g - y * along / count);
    if (kind == NormaliseKind::layer) value = s.factor * (g - total / count - y * along / count);
    store(dx, at + i, value);
  }
}

NormaliseKind kind_of(const KernelCall& call) {
  constexpr std::string_view kNames[] = {"rms", "layer", "l2", "sum", "softmax"};
  const auto* at = std::find(std::begin(kNames), std::end(kNames), call.attrs->text("kind"));
  CHECK(at != std::end(kNames), call.attrs->text("kind"));
  return static_cast<NormaliseKind>(at - std::begin(kNames));
}

void run_normalise(const KernelCall& call) {
  const Rows rows = rows_in(call);
  launch_rows(call, normalise, rows, kind_of(call), eps_of(call), input(call, 0), output(call, 0),
              rows.columns);
}

void run_normalise_grad(const KernelCall& call) {
  const Rows rows = rows_in(call);
  launch_rows(call, normalise_grad, rows, kind_of(call), eps_of(call), input(call, 0), input(call, 1),
              output(call, 0), rows.columns);
}

constexpr KernelDef kKernels[] = {
    {.op = "rms_norm", .name = "rms_norm", .serves = serves_plain, .run = run_rms_norm},
    {.op = "rms_norm_grad_input",
     .name = "rms_norm_grad_input",
     .serves = serves_plain,
     .run = run_rms_norm_grad_input},
    {.op = "rms_norm_grad_weight",
     .name = "rms_norm_grad_weight",
     .serves = serves_plain,
     .workspace_bytes = rms_norm_grad_weight_workspace,
     .run = run_rms_norm_grad_weight},
    {.op = "normalise", .name = "normalise", .serves = serves_plain, .run = run_normalise},
    {.op = "normalise_grad", .name = "normalise_grad", .serves = serves_plain, .run = run_normalise_grad},
};

}  // namespace

std::span<const KernelDef> norm_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
