// What the attention kernels share: which keys a query sees, scores and their slopes, and rows held by a
// warp. Packed and paged attention differ only in where the key at a position lies.
#pragma once

#include "backend/cuda/launch.h"
#include "base/check.h"
#include "ops/biased_attention.h"

namespace tenon::cuda {

struct ScoreRule {
  float scale = 1, softcap = 0, alibi_scale = 1;
  int64_t window = 0, chunk = 0;
  bool alibi_bf16 = false;
  const float *sinks = nullptr, *slopes = nullptr;  // [heads], null: none
  bool sinks_by_token = false;                      // sinks are [tokens, heads]
  Tensor relative = {};                             // [tokens, heads, extent]
  int64_t extent = 0;                               // 0: none

  // The first position that position p sees.
  __device__ int64_t first_seen(int64_t p) const {
    int64_t first = window > 0 && p - window + 1 > 0 ? p - window + 1 : 0;
    if (chunk > 0 && p - p % chunk > first) first = p - p % chunk;
    return first;
  }
  // Where the sink of a token's head lies; `item` is token * heads + head.
  __device__ int64_t sink_index(int64_t item, int64_t head) const { return sinks_by_token ? item : head; }
  // The score of a product q·k with the key at position j, without the learned part, and its derivative by
  // scale * q·k.
  __device__ float score(float product, int64_t head, int64_t j, float* slope) const {
    float s = scale * product;
    *slope = 1;
    if (softcap > 0) {
      const float t = tanhf(s / softcap);
      s = softcap * t;
      *slope = 1 - t * t;
    }
    if (slopes == nullptr) return s;
    float bias = slopes[head] * static_cast<float>(j);
    if (alibi_bf16) {
      bias = bf16_value(bf16_bits(slopes[head] * bf16_value(bf16_bits(static_cast<float>(j)))));
    }
    return s + alibi_scale * bias;
  }
  // What is learned for a token and head of keys that far before.
  __device__ float learned(int64_t item, int64_t distance) const {
    return distance < extent ? load(relative, item * extent + distance) : 0;
  }
};

// Of a call whose biases, if any, follow its first `plain` inputs.
inline ScoreRule score_rule(const KernelCall& call, size_t plain) {
  const Attrs& a = *call.attrs;
  ScoreRule rule;
  rule.scale = static_cast<float>(a.real("scale"));
  rule.softcap = static_cast<float>(a.real("softcap"));
  rule.window = a.integer("window");
  if (!a.has("chunk")) return rule;
  rule.chunk = a.integer("chunk");
  rule.alibi_scale = static_cast<float>(a.real("alibi_scale"));
  const auto alibi = static_cast<Alibi>(a.integer("alibi"));
  rule.alibi_bf16 = alibi == Alibi::bf16;
  if (a.flag("sinks")) {
    rule.sinks_by_token = call.inputs[plain].type.shape.rank() == 2;
    rule.sinks = input_as<float>(call, plain++);
  }
  if (alibi != Alibi::none) rule.slopes = input_as<float>(call, plain++);
  if (a.flag("relative")) {
    rule.relative = input(call, plain);
    rule.extent = call.inputs[plain].type.shape[2];
  }
  return rule;
}

struct Heads {
  int64_t heads, kv_heads, head_dim, v_head_dim;
  __device__ int64_t kv_of(int64_t head) const { return head / (heads / kv_heads); }
};

// Four elements from i on, where i is a multiple of four and rows start at multiples of 8 bytes.
__device__ inline void load_four(const Tensor& t, int64_t i, float (&out)[4]) {
  if (t.dtype == DType::f32) {
    const Words words = reinterpret_cast<const Words*>(t.data)[i / 4];
    for (int e = 0; e < 4; ++e) out[e] = as_float(words.word[e]);
    return;
  }
  struct alignas(8) Pair {
    uint32_t word[2];
  };
  const Pair pair = reinterpret_cast<const Pair*>(t.data)[i / 4];
  for (int e = 0; e < 4; ++e) {
    const auto bits = static_cast<uint16_t>(pair.word[e / 2] >> (16 * (e % 2)));
    out[e] = t.dtype == DType::bf16 ? bf16_value(bits) : f16_value(bits);
  }
}

// A row of at most kWarp * kPer elements, kPer neighbours a lane; elements past `dim` are zero.
template <int kPer>
struct WarpRow {
  static_assert(kPer % 4 == 0);
  float element[kPer];

  __device__ static WarpRow zero() {
    WarpRow row;
#pragma unroll
    for (int i = 0; i < kPer; ++i) row.element[i] = 0;
    return row;
  }
  __device__ static WarpRow load_from(const Tensor& t, int64_t at, int64_t dim) {
    WarpRow row;
    const int first = static_cast<int>(threadIdx.x) % kWarp * kPer;
#pragma unroll
    for (int i = 0; i < kPer; i += 4) {
      float four[4] = {0, 0, 0, 0};
      if (dim % 4 == 0) {
        if (first + i < dim) load_four(t, at + first + i, four);
      } else {
        for (int e = 0; e < 4; ++e) four[e] = first + i + e < dim ? load(t, at + first + i + e) : 0.0f;
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) row.element[i + e] = four[e];
    }
    return row;
  }
  __device__ void store_to(const Tensor& t, int64_t at, int64_t dim) const {
    const int first = static_cast<int>(threadIdx.x) % kWarp * kPer;
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      if (first + i < dim) store(t, at + first + i, element[i]);
    }
  }
  // This lane's part of a product of rows.
  __device__ float part_of_dot(const WarpRow& other) const {
    float total = 0;
#pragma unroll
    for (int i = 0; i < kPer; ++i) total += element[i] * other.element[i];
    return total;
  }
  __device__ float dot(const WarpRow& other) const {
    return warp_sum(part_of_dot(other));
  }
  __device__ void multiply(float factor) {
#pragma unroll
    for (int i = 0; i < kPer; ++i) element[i] *= factor;
  }
  __device__ void add(float factor, const WarpRow& other) {
#pragma unroll
    for (int i = 0; i < kPer; ++i) element[i] += factor * other.element[i];
  }
};

inline constexpr int64_t kMostHeadDim = 20 * kWarp;  // multi-head latent attention has 576

// Calls body with the number of elements a lane, as a constant, that rows of `dim` need.
template <typename Body>
void with_row_width(int64_t dim, Body body) {
  if (dim <= 4 * kWarp) return body(std::integral_constant<int, 4>{});
  if (dim <= 8 * kWarp) return body(std::integral_constant<int, 8>{});
  CHECK(dim <= kMostHeadDim);
  body(std::integral_constant<int, 20>{});
}

inline bool serves_attention(const OpSite& site, const DeviceFacts& facts) {
  if (facts.kind != DeviceKind::cuda) return false;
  const Shape &q = site.inputs[0].shape, &v = site.inputs[2].shape;
  for (const Type& type : site.inputs) {
    if (type.dtype == DType::f64) return false;
  }
  return q[2] <= kMostHeadDim && v[-1] <= kMostHeadDim;
}

inline constexpr unsigned kWarpsPerBlock = 4;

}  // namespace tenon::cuda
