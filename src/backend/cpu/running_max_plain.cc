// running_max, its cached form and its gradient: a number a head and token, too few for a vector version.
#include <algorithm>

#include "backend/cpu/kernel_support.h"

namespace tenon {
namespace {

// Columns [begin, end) of tensors with n columns.
struct Columns {
  int64_t n, begin, end;
};

template <typename F>
void for_columns(const KernelCall& call, int64_t n, F body) {
  call.threads->parallel_for(n, 8, [&](Range range) { body(Columns{n, range.begin, range.end}); });
}

// Writes a token's columns of out and moves theirs of m past it; `anew` begins from 0.
void take_token(const KernelCall& call, const Columns& c, int64_t t, bool anew, const float* m,
                float* m_out) {
  const float *decay = input_as<float>(call, 0) + t * c.n, *value = input_as<float>(call, 1) + t * c.n;
  float* out = output_as<float>(call, 0) + t * 2 * c.n;
  for (int64_t i = c.begin; i < c.end; ++i) {
    out[i] = (anew ? 0.0f : m[i]) + decay[i];
    m_out[i] = out[c.n + i] = std::max(out[i], value[i]);
  }
}

void run(const KernelCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0], n = call.inputs[0].type.shape[1];
  const int32_t* begin = input_as<int32_t>(call, 2);
  float* out = output_as<float>(call, 0);
  for_columns(call, n, [&](const Columns& c) {
    for (int64_t t = 0; t < tokens; ++t) {
      const bool anew = begin[t] == t;
      take_token(call, c, t, anew, anew ? nullptr : out + (2 * t - 1) * n, out + (2 * t + 1) * n);
    }
  });
}

void run_cached(const KernelCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0], n = call.inputs[0].type.shape[1];
  const int32_t *streams = input_as<int32_t>(call, 3), *positions = input_as<int32_t>(call, 4);
  for_columns(call, n, [&](const Columns& c) {
    for (int64_t t = 0; t < tokens; ++t) {
      if (streams[t] < 0) {
        float* out = output_as<float>(call, 0) + t * 2 * n;
        for (float* part : {out, out + n}) std::fill(part + c.begin, part + c.end, 0.0f);
        continue;
      }
      float* m = output_as<float>(call, 1) + streams[t] * n;
      take_token(call, c, t, positions[t] == 0, m, m);
    }
  });
}

void run_grad(const KernelCall& call) {
  const int64_t tokens = call.inputs[0].type.shape[0], n = call.inputs[0].type.shape[2];
  const int32_t* begin = input_as<int32_t>(call, 2);
  float *d_decay = output_as<float>(call, 0), *d_value = output_as<float>(call, 1);
  for_columns(call, n, [&](const Columns& c) {
    for (int64_t t = tokens; t-- > 0;) {
      const float *out = input_as<float>(call, 0) + t * 2 * n, *dout = input_as<float>(call, 1) + t * 2 * n;
      // What the next token passes on to m is what it passed to its decay.
      const float* later = t + 1 < tokens && begin[t + 1] != t + 1 ? d_decay + (t + 1) * n : nullptr;
      for (int64_t i = c.begin; i < c.end; ++i) {
        const float total = dout[n + i] + (later ? later[i] : 0.0f);
        const bool from_value = out[n + i] > out[i];
        d_value[t * n + i] = from_value ? total : 0.0f;
        d_decay[t * n + i] = dout[i] + (from_value ? 0.0f : total);
      }
    }
  });
}

}  // namespace

const KernelDef& running_max_plain_kernel() {
  static constexpr KernelDef def{
      .op = "running_max", .name = "running_max_plain", .serves = serves_all, .run = run};
  return def;
}

const KernelDef& running_max_cached_plain_kernel() {
  static constexpr KernelDef def{.op = "running_max_cached",
                                 .name = "running_max_cached_plain",
                                 .serves = serves_all,
                                 .run = run_cached};
  return def;
}

const KernelDef& running_max_grad_plain_kernel() {
  static constexpr KernelDef def{
      .op = "running_max_grad", .name = "running_max_grad_plain", .serves = serves_all, .run = run_grad};
  return def;
}

}  // namespace tenon
