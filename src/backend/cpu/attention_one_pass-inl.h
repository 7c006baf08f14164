// How attention's gradients are computed in one pass over the scores. Tokens are cut into chunks; a unit of
// work is a kv head's chunk of keys against a chunk of queries, and step p takes every chunk against the
// queries p chunks later. So no two units of a step share a sum, each sum has one order, and any thread may
// take any unit. Included once per Highway target.
#if defined(TENON_BACKEND_CPU_ATTENTION_ONE_PASS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_BACKEND_CPU_ATTENTION_ONE_PASS_INL_H_
#undef TENON_BACKEND_CPU_ATTENTION_ONE_PASS_INL_H_
#else
#define TENON_BACKEND_CPU_ATTENTION_ONE_PASS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "backend/cpu/attention_one_pass.h"
#include "backend/cpu/convert-inl.h"
#include "backend/cpu/work_queue.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon {
namespace HWY_NAMESPACE {

enum Input : size_t { kQ, kK, kV, kSequenceBegin, kOut, kLse, kDout };

// A gradient as it is summed: f32, in the output where that is f32.
struct GradientSums {
  float* data;
  int64_t heads, dim;

  int64_t stride() const { return heads * dim; }
  float* at(int64_t token, int64_t head) const { return data + token * stride() + head * dim; }
};

struct OnePass {
  const KernelCall& call;
  AttentionSizes sizes;
  int64_t chunk_tokens;
  const int32_t* sequence_begin;
  GradientSums sums[3];  // dq, dk, dv

  int64_t begin(int64_t t) const { return sizes.begin(sequence_begin[t], t); }
  int64_t chunks() const { return ceil_div(sizes.tokens, chunk_tokens); }
  Range chunk(int64_t index) const {
    return {index * chunk_tokens, std::min((index + 1) * chunk_tokens, sizes.tokens)};
  }
};

// The sums lie behind the scratch of the threads.
HWY_INLINE OnePass one_pass(const KernelCall& call, const AttentionSizes& sizes, int64_t chunk_tokens,
                            int64_t scratch_bytes) {
  ScratchCutter cutter(call.workspace.data() + scratch_bytes * call.threads->size());
  OnePass pass{call, sizes, chunk_tokens, input_as<int32_t>(call, kSequenceBegin), {}};
  for (size_t i = 0; i < 3; ++i) {
    const Type& type = call.outputs[i].type;
    float* data = type.dtype == DType::f32 ? output_as<float>(call, i) : cutter.take(type.shape.elements());
    pass.sums[i] = {data, type.shape[1], type.shape[2]};
  }
  return pass;
}

HWY_INLINE void clear(const OnePass& pass) {
  pass.call.threads->parallel_for(pass.sizes.tokens, 16, [&](Range tokens) {
    for (const GradientSums& sums : pass.sums)
      std::fill(sums.at(tokens.begin, 0), sums.at(tokens.end, 0), 0.0f);
  });
}

// Sums that do not lie in the outputs are rounded into them.
HWY_INLINE void write_outputs(const OnePass& pass) {
  for (size_t i = 0; i < 3; ++i) {
    const TensorView& out = pass.call.outputs[i];
    if (out.type.dtype == DType::f32) continue;
    const GradientSums& sums = pass.sums[i];
    pass.call.threads->parallel_for(pass.sizes.tokens, 16, [&](Range tokens) {
      round_row(out.type.dtype, sums.at(tokens.begin, 0), tokens.size() * sums.stride(),
                out.data + tokens.begin * sums.stride() * 2);
    });
  }
}

// unit(thread, keys, queries, kv head) for all of them, which adds to the sums; then those are in the
// outputs.
template <typename Unit>
HWY_INLINE void each_step(const OnePass& pass, Unit unit) {
  clear(pass);
  const int64_t kv_heads = pass.sizes.kv_heads, chunks = pass.chunks();
  for (int64_t step = 0; step < chunks; ++step) {
    WorkQueue queue((chunks - step) * kv_heads);
    pass.call.threads->run([&](int thread) {
      for (int64_t taken; (taken = queue.take()) < (chunks - step) * kv_heads;) {
        const int64_t index = taken / kv_heads;
        unit(thread, pass.chunk(index), pass.chunk(index + step), taken % kv_heads);
      }
    });
  }
  write_outputs(pass);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon
HWY_AFTER_NAMESPACE();

#endif
