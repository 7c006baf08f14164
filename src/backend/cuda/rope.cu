// rope, its tables of angles, sequence_length and position_scale. Angles are in f64, as positions times
// frequencies need.
#include "backend/cuda/kernel_list.h"
#include "backend/cuda/kernel_support.h"
#include "backend/cuda/launch.h"

namespace tenon::cuda {
namespace {

// A thread rotates one pair, or passes one element on; each reads what it writes before it writes.
__global__ void rope(Tensor x, const float* table, Tensor out, int64_t heads, int64_t head_dim, int64_t pairs,
                     bool interleaved, float direction, int64_t items) {
  const int64_t item = thread_in_grid();
  if (item >= items) return;
  const int64_t per_head = head_dim - pairs, head = item / per_head, i = item % per_head;
  const int64_t at = head * head_dim;
  if (i >= pairs) {
    store(out, at + pairs + i, load(x, at + pairs + i));
    return;
  }
  const float* angles = table + head / heads * 2 * pairs;
  const float c = angles[i], s = direction * angles[pairs + i];
  const int64_t first = at + (interleaved ? 2 * i : i), second = at + (interleaved ? 2 * i + 1 : i + pairs);
  const float a = load(x, first), b = load(x, second);
  store(out, first, a * c - b * s);
  store(out, second, b * c + a * s);
}

// Half-split rotation of whole heads, kVector pairs a thread.
__global__ void rope_halves(Tensor x, const float* table, Tensor out, unsigned heads, unsigned pairs,
                            float direction, unsigned items) {
  const auto item = static_cast<unsigned>(thread_in_grid());
  if (item >= items) return;
  const unsigned per_head = pairs / kVector, head = item / per_head, i = item % per_head * kVector;
  const int64_t at = static_cast<int64_t>(head) * 2 * pairs + i;
  const Tensor angles{reinterpret_cast<std::byte*>(const_cast<float*>(table)), DType::f32};
  const int64_t angle = static_cast<int64_t>(head / heads) * 2 * pairs + i;
  float a[kVector], b[kVector], c[kVector], s[kVector];
  load_vector(x, at, a);
  load_vector(x, at + pairs, b);
  load_vector(angles, angle, c);
  load_vector(angles, angle + pairs, s);
#pragma unroll
  for (int e = 0; e < kVector; ++e) {
    const float first = a[e], second = b[e], sine = direction * s[e];
    a[e] = first * c[e] - second * sine;
    b[e] = second * c[e] + first * sine;
  }
  store_vector(out, at, a);
  store_vector(out, at + pairs, b);
}

void run_rope(const KernelCall& call) {
  const Shape& x = call.inputs[0].type.shape;
  const int64_t pairs = call.inputs[1].type.shape[2], items = x[0] * x[1] * (x[2] - pairs);
  const bool interleaved = call.attrs->flag("interleaved");
  const float direction = call.attrs->flag("inverse") ? -1.0f : 1.0f;
  if (!interleaved && x[2] == 2 * pairs && pairs % kVector == 0 && items < INT32_MAX) {
    const int64_t vectors = items / kVector;
    launch(call, rope_halves, blocks_for(vectors), kThreads, 0, input(call, 0), input_as<float>(call, 1),
           output(call, 0), static_cast<unsigned>(x[1]), static_cast<unsigned>(pairs), direction,
           static_cast<unsigned>(vectors));
    return;
  }
  launch(call, rope, blocks_for(items), kThreads, 0, input(call, 0), input_as<float>(call, 1),
         output(call, 0), x[1], x[2], pairs, interleaved, direction, items);
}

__device__ inline void store_angle(float* table, int64_t t, int64_t i, int64_t pairs, double angle,
                                   double amplitude) {
  table[t * 2 * pairs + i] = static_cast<float>(amplitude * cos(angle));
  table[t * 2 * pairs + pairs + i] = static_cast<float>(amplitude * sin(angle));
}

__global__ void rope_table(const int32_t* positions, const float* inv_freq, float* table, int64_t pairs,
                           double amplitude, int64_t items) {
  const int64_t item = thread_in_grid();
  if (item >= items) return;
  const int64_t t = item / pairs, i = item % pairs;
  store_angle(table, t, i, pairs, static_cast<double>(positions[t]) * inv_freq[i], amplitude);
}

void run_rope_table(const KernelCall& call) {
  const int64_t pairs = call.inputs[1].type.shape[0], items = call.inputs[0].type.shape[0] * pairs;
  launch(call, rope_table, blocks_for(items), kThreads, 0, input_as<int32_t>(call, 0),
         input_as<float>(call, 1), output_as<float>(call, 0), pairs, call.attrs->real("amplitude"), items);
}

struct ByLength {
  const int32_t *positions, *length;
  const float *inv_freq, *long_inv_freq;
  int64_t pairs, long_from, items;
  double factor, theta, amplitude;

  // The rule of ops/rope_table_by_length.h.
  __device__ double frequency(int64_t i, int32_t length) const {
    if (length <= long_from) return inv_freq[i];
    if (factor == 0) return long_inv_freq[i];
    const double dim = 2 * static_cast<double>(pairs);
    const double stretched =
        factor * static_cast<double>(length) / static_cast<double>(long_from) - (factor - 1);
    return pow(theta * pow(stretched, dim / (dim - 2)), -2 * static_cast<double>(i) / dim);
  }
};

__global__ void rope_table_by_length(ByLength in, float* table) {
  const int64_t item = thread_in_grid();
  if (item >= in.items) return;
  const int64_t t = item / in.pairs, i = item % in.pairs;
  store_angle(table, t, i, in.pairs, in.positions[t] * in.frequency(i, in.length[t]), in.amplitude);
}

void run_rope_table_by_length(const KernelCall& call) {
  const Attrs& a = *call.attrs;
  const int64_t tokens = call.inputs[0].type.shape[0], pairs = call.inputs[2].type.shape[0];
  const ByLength in{input_as<int32_t>(call, 0),
                    input_as<int32_t>(call, 1),
                    input_as<float>(call, 2),
                    input_as<float>(call, 3),
                    pairs,
                    a.integer("long_from"),
                    tokens * pairs,
                    a.real("dynamic_factor"),
                    a.real("theta"),
                    a.real("amplitude")};
  launch(call, rope_table_by_length, blocks_for(in.items), kThreads, 0, in, output_as<float>(call, 0));
}

// A block a token.
__global__ void sequence_length(const int32_t* positions, const int32_t* sequence, int32_t* out,
                                int64_t tokens) {
  __shared__ float scratch[kWarp];
  const int64_t t = blockIdx.x;
  float length = 0;  // exact: positions are far below 2^24
  for (int64_t s = threadIdx.x; s < tokens; s += blockDim.x) {
    if (sequence[s] == sequence[t]) length = fmaxf(length, static_cast<float>(positions[s] + 1));
  }
  length = block_max(length, scratch);
  if (threadIdx.x == 0) out[t] = static_cast<int32_t>(length);
}

void run_sequence_length(const KernelCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0];
  launch(call, sequence_length, static_cast<unsigned>(tokens), 128, 0, input_as<int32_t>(call, 0),
         input_as<int32_t>(call, 1), output_as<int32_t>(call, 0), tokens);
}

struct PositionRule {
  double constant, beta, offset;
  int64_t shift, period;
  bool power;

  // The rule of ops/position_scale.h.
  __device__ float operator()(int32_t position) const {
    const double shifted = static_cast<double>(position + shift), width = static_cast<double>(period);
    if (power) return static_cast<float>(pow(offset + shifted / width, beta));
    return static_cast<float>(constant + beta * log(offset + floor(shifted / width)));
  }
};

__global__ void position_scale(PositionRule rule, const int32_t* positions, float* out, int64_t tokens) {
  const int64_t t = thread_in_grid();
  if (t < tokens) out[t] = rule(positions[t]);
}

void run_position_scale(const KernelCall& call) {
  const Attrs& a = *call.attrs;
  const int64_t tokens = call.inputs[0].type.elements();
  const PositionRule rule{a.real("constant"), a.real("beta"),      a.real("offset"),
                          a.integer("shift"), a.integer("period"), a.flag("power")};
  launch(call, position_scale, blocks_for(tokens), kThreads, 0, rule, input_as<int32_t>(call, 0),
         output_as<float>(call, 0), tokens);
}

constexpr KernelDef kKernels[] = {
    {.op = "rope", .name = "rope", .serves = serves_plain, .run = run_rope},
    {.op = "rope_table", .name = "rope_table", .serves = serves_plain, .run = run_rope_table},
    {.op = "rope_table_by_length",
     .name = "rope_table_by_length",
     .serves = serves_plain,
     .run = run_rope_table_by_length},
    {.op = "sequence_length", .name = "sequence_length", .serves = serves_plain, .run = run_sequence_length},
    {.op = "position_scale", .name = "position_scale", .serves = serves_plain, .run = run_position_scale},
};

}  // namespace

std::span<const KernelDef> rope_kernels() {
  return kKernels;
}

}  // namespace tenon::cuda
