// embedding_grad and gather_rows_grad: rows of dy added where an id says, in order, without atomics. The
// first token of an id owns its row: it adds up all later ones.
#include "backend/cuda/convert.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"

namespace tenon::cuda {
namespace {

constexpr int kListed = 1024;  // later tokens of an id found at a time

// Whether an earlier token has the id of token t.
__device__ bool has_earlier(const int32_t* ids, int64_t t) {
  __shared__ int found;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  for (int64_t s = threadIdx.x; s < t; s += blockDim.x) {
    if (ids[s] == ids[t]) found = 1;  // every writer writes the same
  }
  __syncthreads();
  return found != 0;
}

__global__ void scatter_add(Tensor dy, const int32_t* ids, Tensor out, int64_t tokens, int64_t n,
                            int64_t width) {
  const int64_t t = blockIdx.x, id = ids[t];
  if (id < 0 || id >= n) stop();
  if (has_earlier(ids, t)) return;
  __shared__ uint8_t same[kListed];
  for (int64_t first_column = 0; first_column < width; first_column += blockDim.x) {
    const int64_t column = first_column + threadIdx.x;
    float total = 0;
    for (int64_t begin = t; begin < tokens; begin += kListed) {
      __syncthreads();
      for (int64_t i = threadIdx.x; i < kListed; i += blockDim.x) {
        same[i] = begin + i < tokens && ids[begin + i] == id ? 1 : 0;
      }
      __syncthreads();
      for (int i = 0; column < width && i < kListed; ++i) {
        if (same[i]) total += load(dy, (begin + i) * width + column);
      }
    }
    if (column < width) store(out, id * width + column, total);
  }
}

void run(const KernelCall& call) {
  launch_clear(call, call.outputs[0].data, call.outputs[0].type.bytes());
  const Shape &dy = call.inputs[0].type.shape, &out = call.outputs[0].type.shape;
  launch(call, scatter_add, static_cast<unsigned>(dy[0]), kThreads, 0, input(call, 0),
         input_as<int32_t>(call, 1), output(call, 0), dy[0], out[0], dy[1]);
}

constexpr KernelDef kKernels[] = {
    {.op = "embedding_grad", .name = "embedding_grad", .serves = serves_plain, .run = run},
    {.op = "gather_rows_grad", .name = "gather_rows_grad", .serves = serves_plain, .run = run},
};

}  // namespace

std::span<const KernelDef> scatter_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
