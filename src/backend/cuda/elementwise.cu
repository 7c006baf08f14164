// add, mul, scale, silu, swiglu and their gradients, accumulate, and products and sums with a row or a
// column.
#include "backend/cuda/elementwise.h"

#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"

namespace tenon::cuda {
namespace {

__device__ inline float sigmoid(float x) {
  return 1 / (1 + expf(-x));
}

struct Add {
  __device__ void operator()(const float (&x)[2], float (&y)[1], int64_t) const { y[0] = x[0] + x[1]; }
};
struct Mul {
  __device__ void operator()(const float (&x)[2], float (&y)[1], int64_t) const { y[0] = x[0] * x[1]; }
};
struct Scale {
  float factor;
  __device__ void operator()(const float (&x)[1], float (&y)[1], int64_t) const { y[0] = factor * x[0]; }
};
struct Silu {
  __device__ void operator()(const float (&x)[1], float (&y)[1], int64_t) const {
    y[0] = x[0] * sigmoid(x[0]);
  }
};
struct SiluGrad {
  __device__ void operator()(const float (&x)[2], float (&y)[1], int64_t) const {
    const float s = sigmoid(x[0]);
    y[0] = x[1] * s * (1 + x[0] * (1 - s));
  }
};
struct Swiglu {
  __device__ void operator()(const float (&x)[2], float (&y)[1], int64_t) const {
    y[0] = x[0] * sigmoid(x[0]) * x[1];
  }
};
struct SwigluGrad {
  __device__ void operator()(const float (&x)[3], float (&y)[2], int64_t) const {
    const float s = sigmoid(x[0]);
    y[0] = x[2] * x[1] * s * (1 + x[0] * (1 - s));
    y[1] = x[2] * x[0] * s;
  }
};

// What stands beside x: one element a column (of `columns`), or one a row.
struct AddRow {
  Tensor row;
  int64_t columns;
  __device__ void operator()(const float (&x)[1], float (&y)[1], int64_t i) const {
    y[0] = x[0] + load(row, i % columns);
  }
};
struct MulRow {
  Tensor row;
  int64_t columns;
  float offset;
  __device__ void operator()(const float (&x)[1], float (&y)[1], int64_t i) const {
    y[0] = x[0] * (load(row, i % columns) + offset);
  }
};
struct MulColumn {
  Tensor column;
  int64_t columns;
  __device__ void operator()(const float (&x)[1], float (&y)[1], int64_t i) const {
    y[0] = x[0] * load(column, i / columns);
  }
};

int64_t columns_of(const KernelCall& call) {
  return call.inputs[0].type.shape[-1];
}

constexpr KernelDef kKernels[] = {
    {.op = "accumulate",
     .name = "accumulate",
     .serves = serves_plain,
     .run = [](const KernelCall& call) { launch_elementwise<2>(call, Add{}); }},
    {.op = "add",
     .name = "add",
     .serves = serves_plain,
     .run = [](const KernelCall& call) { launch_elementwise<2>(call, Add{}); }},
    {.op = "mul",
     .name = "mul",
     .serves = serves_plain,
     .run = [](const KernelCall& call) { launch_elementwise<2>(call, Mul{}); }},
    {.op = "scale",
     .name = "scale",
     .serves = serves_plain,
     .run =
         [](const KernelCall& call) {
           launch_elementwise<1>(call, Scale{static_cast<float>(call.attrs->real("factor"))});
         }},
    {.op = "silu",
     .name = "silu",
     .serves = serves_plain,
     .run = [](const KernelCall& call) { launch_elementwise<1>(call, Silu{}); }},
    {.op = "silu_grad",
     .name = "silu_grad",
     .serves = serves_plain,
     .run = [](const KernelCall& call) { launch_elementwise<2>(call, SiluGrad{}); }},
    {.op = "swiglu",
     .name = "swiglu",
     .serves = serves_plain,
     .run = [](const KernelCall& call) { launch_elementwise<2>(call, Swiglu{}); }},
    {.op = "swiglu_grad",
     .name = "swiglu_grad",
     .serves = serves_plain,
     .run = [](const KernelCall& call) { launch_elementwise<3, 2>(call, SwigluGrad{}); }},
    {.op = "add_row",
     .name = "add_row",
     .serves = serves_plain,
     .run =
         [](const KernelCall& call) {
           launch_elementwise<1>(call, AddRow{input(call, 1), columns_of(call)});
         }},
    {.op = "mul_row",
     .name = "mul_row",
     .serves = serves_plain,
     .run =
         [](const KernelCall& call) {
           const auto offset = static_cast<float>(call.attrs->real("offset"));
           launch_elementwise<1>(call, MulRow{input(call, 1), columns_of(call), offset});
         }},
    {.op = "mul_column",
     .name = "mul_column",
     .serves = serves_plain,
     .run =
         [](const KernelCall& call) {
           launch_elementwise<1>(call, MulColumn{input(call, 1), columns_of(call)});
         }},
};

}  // namespace

std::span<const KernelDef> elementwise_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
