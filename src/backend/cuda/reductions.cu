// sum, global_norm, column_sum and row_dot, every sum in an order that depends on sizes alone.
#include "backend/cuda/column_sums.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"

namespace tenon::cuda {
namespace {

constexpr int kParts = 64;     // partial sums of a tensor
constexpr int kTensors = 128;  // of global_norm, one launch

struct Summed {
  Tensor tensor[kTensors];
  int64_t elements[kTensors];
};

// partial[tensor * kParts + part] = the sum of the elements (or of their squares) of that part, in f64.
template <bool kSquares>
__global__ void sum_parts(Summed in, double* partial) {
  __shared__ double scratch[kWarp];
  const Tensor x = in.tensor[blockIdx.y];
  double total = 0;
  for (int64_t i = thread_in_grid(); i < in.elements[blockIdx.y]; i += int64_t{kParts} * blockDim.x) {
    const double value = load(x, i);
    total += kSquares ? value * value : value;
  }
  total = block_sum(total, scratch);
  if (threadIdx.x == 0) partial[blockIdx.y * kParts + blockIdx.x] = total;
}

__global__ void sum_partials(const double* partial, int64_t count, bool root, float* out) {
  __shared__ double scratch[kWarp];
  double total = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) total += partial[i];
  total = block_sum(total, scratch);
  if (threadIdx.x == 0) *out = static_cast<float>(root ? sqrt(total) : total);
}

template <bool kSquares>
void run_sum(const KernelCall& call) {
  double* partial = reinterpret_cast<double*>(call.workspace.data());
  const size_t inputs = call.inputs.size();
  for (size_t first = 0; first < inputs; first += kTensors) {
    const size_t count = std::min<size_t>(kTensors, inputs - first);
    Summed in;
    for (size_t i = 0; i < count; ++i) {
      in.tensor[i] = input(call, first + i);
      in.elements[i] = call.inputs[first + i].type.elements();
    }
    launch(call, sum_parts<kSquares>, dim3(kParts, static_cast<unsigned>(count)), kThreads, 0, in,
           partial + first * kParts);
  }
  launch(call, sum_partials, 1, kThreads, 0, static_cast<const double*>(partial),
         static_cast<int64_t>(inputs) * kParts, kSquares, output_as<float>(call, 0));
}

int64_t sum_workspace(const OpSite& site, const DeviceFacts&) {
  return static_cast<int64_t>(site.inputs.size()) * kParts * static_cast<int64_t>(sizeof(double));
}

struct Element {
  Tensor x;
  int64_t columns;
  __device__ float operator()(int64_t row, int64_t column) const { return load(x, row * columns + column); }
};

void run_column_sum(const KernelCall& call) {
  const Shape& x = call.inputs[0].type.shape;
  launch_column_sums(call, Element{input(call, 0), x[-1]}, rows_of(x), x[-1]);
}

__global__ void row_dot(Tensor a, Tensor b, Tensor out, int64_t n) {
  __shared__ float scratch[kWarp];
  const int64_t row = blockIdx.x;
  float total = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) total += load(a, row * n + i) * load(b, row * n + i);
  total = block_sum(total, scratch);
  if (threadIdx.x == 0) store(out, row, total);
}

void run_row_dot(const KernelCall& call) {
  const Shape& a = call.inputs[0].type.shape;
  launch(call, row_dot, static_cast<unsigned>(call.outputs[0].type.elements()), 128, 0, input(call, 0),
         input(call, 1), output(call, 0), a[-1]);
}

constexpr KernelDef kKernels[] = {
    {.op = "sum",
     .name = "sum",
     .serves = serves_plain,
     .workspace_bytes = sum_workspace,
     .run = run_sum<false>},
    {.op = "global_norm",
     .name = "global_norm",
     .serves = serves_plain,
     .workspace_bytes = sum_workspace,
     .run = run_sum<true>},
    {.op = "column_sum",
     .name = "column_sum",
     .serves = serves_plain,
     .workspace_bytes =
         [](const OpSite& site, const DeviceFacts&) {
           return column_sums_workspace(rows_of(site.inputs[0].shape), site.inputs[0].shape[-1]);
         },
     .run = run_column_sum},
    {.op = "row_dot", .name = "row_dot", .serves = serves_plain, .run = run_row_dot},
};

}  // namespace

std::span<const KernelDef> reduction_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
