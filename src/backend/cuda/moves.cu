// Ops that move elements: embedding, gather_rows, cache_write, the columns ops, gather_columns, permute.
#include "backend/cuda/convert.h"
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"
#include "backend/cuda/quantised.h"

namespace tenon::cuda {
namespace {

// out[i] = x[rows[i]], a block a row; x may be block-quantised.
__global__ void gather(Tensor x, const int32_t* rows, Tensor out, int64_t n, int64_t width) {
  const int64_t i = blockIdx.x, row = rows[i];
  if (row < 0 || row >= n) stop();
  for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
    store(out, i * width + c, load_number(x, row * width + c));
}

void run_gather(const KernelCall& call) {
  const Shape& x = call.inputs[0].type.shape;
  if (x[1] == 0) return;
  launch(call, gather, static_cast<unsigned>(call.inputs[1].type.shape[0]), kThreads, 0, input(call, 0),
         input_as<int32_t>(call, 1), output(call, 0), x[0], x[1]);
}

__global__ void write_slots(Tensor rows, const int32_t* slots, Tensor cache, int64_t capacity,
                            int64_t width) {
  const int64_t t = blockIdx.x, slot = slots[t];
  if (slot < 0) return;
  if (slot >= capacity) stop();
  for (int64_t c = threadIdx.x; c < width; c += blockDim.x)
    store(cache, slot * width + c, load(rows, t * width + c));
}

void run_cache_write(const KernelCall& call) {
  const Shape &cache = call.inputs[0].type.shape, &rows = call.inputs[1].type.shape;
  launch(call, write_slots, static_cast<unsigned>(rows[0]), kThreads, 0, input(call, 1),
         input_as<int32_t>(call, 2), output(call, 0), cache[0] * cache[1], rows[1] * rows[2]);
}

// A rectangle of columns of a matrix with `width` columns.
struct Columns {
  Tensor tensor;
  int64_t width, begin;
};

__global__ void copy_columns(Columns from, Columns to, int64_t rows, int64_t count) {
  const int64_t i = thread_in_grid();
  if (i >= rows * count) return;
  const int64_t row = i / count, column = i % count;
  store(to.tensor, row * to.width + to.begin + column,
        load(from.tensor, row * from.width + from.begin + column));
}

void launch_copy(const KernelCall& call, const Columns& from, const Columns& to, int64_t count) {
  const int64_t rows = rows_of(call.outputs[0].type.shape);
  launch(call, copy_columns, blocks_for(rows * count), kThreads, 0, from, to, rows, count);
}

int64_t width_of(const TensorView& view) {
  return view.type.shape[-1];
}

void run_slice(const KernelCall& call) {
  const int64_t count = width_of(call.outputs[0]);
  launch_copy(call, {input(call, 0), width_of(call.inputs[0]), call.attrs->integer("begin")},
              {output(call, 0), count, 0}, count);
}

void run_pad(const KernelCall& call) {
  launch_clear(call, call.outputs[0].data, call.outputs[0].type.bytes());
  const int64_t count = width_of(call.inputs[0]);
  launch_copy(call, {input(call, 0), count, 0},
              {output(call, 0), width_of(call.outputs[0]), call.attrs->integer("begin")}, count);
}

void run_concat(const KernelCall& call) {
  int64_t begin = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const int64_t count = width_of(call.inputs[i]);
    launch_copy(call, {input(call, i), count, 0}, {output(call, 0), width_of(call.outputs[0]), begin}, count);
    begin += count;
  }
}

__global__ void repeat(Tensor x, Tensor out, int64_t n, int64_t width, int64_t count) {
  const int64_t i = thread_in_grid();
  if (i < count) store(out, i, load(x, i / width * n + i % width % n));
}

__global__ void fold(Tensor x, Tensor out, int64_t n, int64_t width, int64_t count) {
  const int64_t i = thread_in_grid();
  if (i >= count) return;
  float total = 0;
  for (int64_t at = i % n; at < width; at += n) total += load(x, i / n * width + at);
  store(out, i, total);
}

void run_repeat(const KernelCall& call) {
  const int64_t count = call.outputs[0].type.elements();
  launch(call, repeat, blocks_for(count), kThreads, 0, input(call, 0), output(call, 0),
         width_of(call.inputs[0]), width_of(call.outputs[0]), count);
}

void run_fold(const KernelCall& call) {
  const int64_t count = call.outputs[0].type.elements();
  launch(call, fold, blocks_for(count), kThreads, 0, input(call, 0), output(call, 0),
         width_of(call.outputs[0]), width_of(call.inputs[0]), count);
}

__global__ void gather_columns(Tensor x, const int32_t* ids, Tensor out, int64_t columns, int64_t k,
                               int64_t count) {
  const int64_t i = thread_in_grid();
  if (i >= count) return;
  if (ids[i] < 0 || ids[i] >= columns) stop();
  store(out, i, load(x, i / k * columns + ids[i]));
}

// dx[r, c] = the sum of dy[r, i] where ids[r, i] = c, in order of i.
__global__ void gather_columns_grad(Tensor dy, const int32_t* ids, Tensor dx, int64_t columns, int64_t k,
                                    int64_t count) {
  const int64_t i = thread_in_grid();
  if (i >= count) return;
  const int64_t row = i / columns;
  float total = 0;
  for (int64_t j = 0; j < k; ++j) {
    if (ids[row * k + j] == i % columns) total += load(dy, row * k + j);
  }
  store(dx, i, total);
}

void run_gather_columns(const KernelCall& call) {
  const int64_t count = call.outputs[0].type.elements();
  launch(call, gather_columns, blocks_for(count), kThreads, 0, input(call, 0), input_as<int32_t>(call, 1),
         output(call, 0), width_of(call.inputs[0]), width_of(call.inputs[1]), count);
}

void run_gather_columns_grad(const KernelCall& call) {
  const int64_t count = call.outputs[0].type.elements();
  launch(call, gather_columns_grad, blocks_for(count), kThreads, 0, input(call, 0),
         input_as<int32_t>(call, 1), output(call, 0), width_of(call.outputs[0]), width_of(call.inputs[1]),
         count);
}

struct Permutation {
  int rank;
  int64_t extent[kMaxRank];  // of the output
  int64_t stride[kMaxRank];  // of x, by axis of the output
};

__global__ void permute(Tensor x, Tensor out, Permutation p, int64_t count) {
  const int64_t i = thread_in_grid();
  if (i >= count) return;
  int64_t rest = i, from = 0;
  for (int axis = p.rank - 1; axis >= 0; --axis) {
    from += rest % p.extent[axis] * p.stride[axis];
    rest /= p.extent[axis];
  }
  store(out, i, load(x, from));
}

void run_permute(const KernelCall& call) {
  const std::vector<int64_t>& order = call.attrs->integers("order");
  const Shape &in = call.inputs[0].type.shape, &out = call.outputs[0].type.shape;
  Permutation p{out.rank(), {}, {}};
  for (int axis = 0; axis < out.rank(); ++axis) {
    p.extent[axis] = out[axis];
    p.stride[axis] = 1;
    for (int inner = static_cast<int>(order[static_cast<size_t>(axis)]) + 1; inner < in.rank(); ++inner) {
      p.stride[axis] *= in[inner];
    }
  }
  const int64_t count = out.elements();
  launch(call, permute, blocks_for(count), kThreads, 0, input(call, 0), output(call, 0), p, count);
}

constexpr KernelDef kKernels[] = {
    {.op = "embedding", .name = "embedding", .serves = serves_number<0>, .run = run_gather},
    {.op = "gather_rows", .name = "gather_rows", .serves = serves_plain, .run = run_gather},
    {.op = "cache_write", .name = "cache_write", .serves = serves_plain, .run = run_cache_write},
    {.op = "slice_columns", .name = "slice_columns", .serves = serves_plain, .run = run_slice},
    {.op = "pad_columns", .name = "pad_columns", .serves = serves_plain, .run = run_pad},
    {.op = "concat_columns", .name = "concat_columns", .serves = serves_plain, .run = run_concat},
    {.op = "repeat_columns", .name = "repeat_columns", .serves = serves_plain, .run = run_repeat},
    {.op = "fold_columns", .name = "fold_columns", .serves = serves_plain, .run = run_fold},
    {.op = "gather_columns", .name = "gather_columns", .serves = serves_plain, .run = run_gather_columns},
    {.op = "gather_columns_grad",
     .name = "gather_columns_grad",
     .serves = serves_plain,
     .run = run_gather_columns_grad},
    {.op = "permute", .name = "permute", .serves = serves_plain, .run = run_permute},
};

}  // namespace

std::span<const KernelDef> move_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
