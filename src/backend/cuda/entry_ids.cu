// block_ids, window_entry_ids, every_entry: a warp for each token, which writes its ids in order. shift_ids.
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/lane_bits.h"
#include "backend/cuda/launch.h"

namespace tenon::cuda {
namespace {

constexpr unsigned kWarpsPerBlock = 4;

struct Places {
  const int32_t *positions, *sequence_begin;  // sequence_begin null: ids are positions
  int64_t tokens, width;
  __device__ int64_t begin(int64_t t) const { return sequence_begin == nullptr ? 0 : sequence_begin[t]; }
};

__device__ inline int64_t token_of_warp() {
  return static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
}

// A token's row of ids, as its warp fills it.
struct IdRow {
  int32_t* ids;
  int64_t width, count = 0;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  // Appends first, first + step, ..., `length` of them.
  __device__ void add_range(int64_t first, int64_t length, int64_t step) {
    for (int64_t i = lane(); i < length; i += kWarp) {
      if (count + i < width) ids[count + i] = static_cast<int32_t>(first + i * step);
    }
    count += length;
  }
  // Appends, for each entry that is there, the `each` ids factor * entry + shift and those after it.
  __device__ void add_entries(const int32_t* entries, int64_t n, int64_t factor, int64_t shift,
                              int64_t each) {
    for (int64_t first = 0; first < n; first += kWarp) {
      const int64_t entry = first + lane() < n ? entries[first + lane()] : -1;
      const uint32_t there = lanes_where(entry >= 0);
      const int64_t at = count + each * count_bits(there & ((1u << lane()) - 1));
      for (int64_t i = 0; entry >= 0 && i < each; ++i)
        ids[at + i] = static_cast<int32_t>(factor * entry + shift + i);
      count += each * count_bits(there);
    }
  }
  __device__ void end() {
    for (int64_t i = count + lane(); i < width; i += kWarp) ids[i] = -1;
  }
};

__global__ void block_ids(const int32_t* entries, int64_t n, Places p, int64_t stride, int32_t* out) {
  const int64_t t = token_of_warp();
  if (t >= p.tokens) return;
  IdRow row{out + t * p.width, p.width};
  row.add_entries(entries + t * n, n, 1, 1 - stride, stride);
  const int64_t position = p.positions[t], whole = (position + 1) / stride * stride;
  row.add_range(p.begin(t) + whole, position + 1 - whole, 1);
  row.end();
}

__global__ void window_entry_ids(const int32_t* entries, int64_t n, Places p, int64_t window, int32_t* out) {
  const int64_t t = token_of_warp();
  if (t >= p.tokens) return;
  IdRow row{out + t * p.width, p.width};
  const int64_t position = p.positions[t], first = position >= window ? position - window + 1 : 0;
  row.add_range(2 * (p.begin(t) + first), position + 1 - first, 2);
  row.add_entries(entries + t * n, n, 2, 1, 1);
  row.end();
}

__global__ void every_entry(Places p, int64_t stride, int32_t* out) {
  const int64_t t = token_of_warp();
  if (t >= p.tokens) return;
  IdRow row{out + t * p.width, p.width};
  row.add_range(p.begin(t) + stride - 1, (p.positions[t] + 1) / stride, stride);
  row.end();
}

__global__ void shift_ids(const int32_t* ids, int64_t shift, int32_t* out, int64_t count) {
  const int64_t i = thread_in_grid();
  if (i < count) out[i] = ids[i] + shift > 0 ? static_cast<int32_t>(ids[i] + shift) : 0;
}

// Of a call whose places begin with input `first`.
Places places_of(const KernelCall& call, size_t first) {
  const Shape& ids = call.outputs[0].type.shape;
  const bool packed = call.inputs.size() > first + 1;
  return {input_as<int32_t>(call, first), packed ? input_as<int32_t>(call, first + 1) : nullptr, ids[0],
          ids[1]};
}

void run_with_entries(const KernelCall& call, const char* attribute,
                      void (*kernel)(const int32_t*, int64_t, Places, int64_t, int32_t*)) {
  const Places places = places_of(call, 1);
  launch(call, kernel, blocks_for(places.tokens, kWarpsPerBlock), kWarpsPerBlock * kWarp, 0,
         input_as<int32_t>(call, 0), call.inputs[0].type.shape[1], places, call.attrs->integer(attribute),
         output_as<int32_t>(call, 0));
}

void run_block(const KernelCall& call) {
  run_with_entries(call, "stride", block_ids);
}

void run_window(const KernelCall& call) {
  run_with_entries(call, "window", window_entry_ids);
}

void run_every(const KernelCall& call) {
  const Places places = places_of(call, 0);
  launch(call, every_entry, blocks_for(places.tokens, kWarpsPerBlock), kWarpsPerBlock * kWarp, 0, places,
         call.attrs->integer("stride"), output_as<int32_t>(call, 0));
}

void run_shift(const KernelCall& call) {
  const int64_t count = call.outputs[0].type.elements();
  launch(call, shift_ids, blocks_for(count), kThreads, 0, input_as<int32_t>(call, 0),
         call.attrs->integer("shift"), output_as<int32_t>(call, 0), count);
}

constexpr KernelDef kKernels[] = {
    {.op = "block_ids", .name = "block_ids", .serves = serves_plain, .run = run_block},
    {.op = "window_entry_ids", .name = "window_entry_ids", .serves = serves_plain, .run = run_window},
    {.op = "every_entry", .name = "every_entry", .serves = serves_plain, .run = run_every},
    {.op = "shift_ids", .name = "shift_ids", .serves = serves_plain, .run = run_shift},
};

}  // namespace

std::span<const KernelDef> entry_ids_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
