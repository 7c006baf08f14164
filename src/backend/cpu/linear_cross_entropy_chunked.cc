// The loss: a running softmax over chunks of the vocabulary.
#include <cmath>

#include "backend/cpu/cross_entropy.h"
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {
namespace {

void finish_rows(const CrossEntropy& ce, const RunningSoftmax* states, int64_t begin, int64_t end) {
  float* loss = output_as<float>(ce.call, 0);
  float* lse = output_as<float>(ce.call, 1);
  int32_t* predicted = output_as<int32_t>(ce.call, 2);
  for (int64_t i = begin; i < end; ++i) {
    const RunningSoftmax& state = states[i - begin];
    const int32_t token = ce.rows[static_cast<size_t>(i)];
    const double log_sum = static_cast<double>(state.largest) + std::log(state.sum);
    loss[token] = static_cast<float>(log_sum - state.label_logit);
    lse[token] = static_cast<float>(log_sum);
    predicted[token] = state.predicted;
  }
}

template <GemmUnit kUnit>
void run(const KernelCall& call) {
  CrossEntropy ce(call, kUnit);
  std::fill_n(output_as<float>(call, 0), ce.tokens, 0.0f);
  std::fill_n(output_as<float>(call, 1), ce.tokens, 0.0f);
  std::fill_n(output_as<int32_t>(call, 2), ce.tokens, -1);
  auto* states = reinterpret_cast<RunningSoftmax*>(ce.state);
  for (int64_t begin = 0; begin < ce.trained; begin += kChunkRows) {
    const int64_t end = std::min(begin + kChunkRows, ce.trained);
    std::fill_n(states, end - begin, RunningSoftmax{});
    ce.gather(begin, end);
    for (int64_t first = 0; first < ce.vocab; first += kChunkVocab) {
      const int64_t count = std::min(kChunkVocab, ce.vocab - first);
      ce.compute_logits(end - begin, first, first + count);
      call.threads->parallel_for(end - begin, 1, [&](Range range) {
        for (int64_t i = range.begin; i < range.end; ++i) {
          add_logits(ce.logits + i * count, count, first, ce.label(begin + i), ce.softcap, states[i]);
        }
      });
    }
    finish_rows(ce, states, begin, end);
  }
}

template <GemmUnit kUnit>
bool serves(const OpSite& site, const DeviceFacts& facts) {
  return serves_cross_entropy(site, facts, kUnit);
}

template <GemmUnit kUnit>
int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  return cross_entropy_workspace_bytes(site, facts, 0, kUnit);
}

}  // namespace

TENON_UNIT_KERNELS("linear_cross_entropy", linear_cross_entropy_chunked, linear_cross_entropy_bf16_pairs,
                   linear_cross_entropy_bf16_tiles, 0.0)

}  // namespace tenon
