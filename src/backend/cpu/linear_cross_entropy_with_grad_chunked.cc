// Loss and d hidden together, in one pass over the vocabulary: with p the softmax, d hidden = dloss * scale *
// sum over j other than the label of p_j * (w_j - w_label). As in attention the sum is of exp(z_j - largest),
// multiplied anew where `largest` grows, so that only one tile of logits exists and each row of the weight is
// packed twice for all rows of a chunk.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/convert.h"
#include "backend/cpu/cross_entropy.h"
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {
namespace {

// One chunk of trained rows.
class Chunk {
 public:
  Chunk(CrossEntropy& ce, int64_t begin, int64_t rows)
      : ce_(ce),
        begin_(begin),
        rows_(rows),
        states_(reinterpret_cast<RunningSoftmax*>(ce.state)),
        sums_(reinterpret_cast<float*>(ce.state + rows * kCrossEntropyStateBytes)) {}

  void run() {
    std::fill_n(states_, rows_, RunningSoftmax{});
    ce_.gather(begin_, begin_ + rows_);
    for (int64_t first = 0; first < ce_.vocab; first += kChunkVocab) {
      const int64_t count = std::min(kChunkVocab, ce_.vocab - first);
      ce_.compute_logits(rows_, first, first + count);
      ce_.call.threads->parallel_for(rows_, 1, [&](Range range) {
        for (int64_t i = range.begin; i < range.end; ++i) weigh(i, first, count);
      });
      add_weighted_rows(first, count);
    }
    ce_.call.threads->parallel_for(rows_, 16, [&](Range range) {
      for (int64_t i = range.begin; i < range.end; ++i) finish(i);
    });
  }

 private:
  float* sums(int64_t i) const { return sums_ + i * ce_.hidden_size; }

  void weigh(int64_t i, int64_t first, int64_t count) {
    const float factor =
        logits_to_weights(ce_.logits + i * count, count, first, ce_.label(begin_ + i), states_[i]);
    if (factor == 1.0f) return;
    for (int64_t j = 0; j < ce_.hidden_size; ++j) sums(i)[j] *= factor;
  }

  void add_weighted_rows(int64_t first, int64_t count) {
    Gemm g;
    g.unit = ce_.unit;
    g.m = rows_;
    g.n = ce_.hidden_size;
    g.k = count;
    g.a = {reinterpret_cast<std::byte*>(ce_.logits), DType::f32, count};
    g.b = ce_.weight_rows(first);
    g.out = reinterpret_cast<std::byte*>(sums_);
    g.out_stride = ce_.hidden_size;
    if (first > 0) g.addend = {g.out, DType::f32, ce_.hidden_size};
    gemm(g, ce_.gemm_workspace, *ce_.call.threads);
  }

  void finish(int64_t i) {
    const RunningSoftmax& state = states_[i];
    const int32_t token = ce_.rows[static_cast<size_t>(begin_ + i)];
    const double lse = static_cast<double>(state.largest) + std::log(state.sum);
    output_as<float>(ce_.call, 1)[token] = static_cast<float>(lse - state.label_logit);
    output_as<int32_t>(ce_.call, 2)[token] = state.predicted;
    const double factor = input_as<float>(ce_.call, 3)[token] * ce_.logit_scale / state.sum;
    subtract_label(i, static_cast<float>(factor), static_cast<float>(-state.others * factor));
    const TensorView& out = ce_.call.outputs[0];
    const int64_t row_bytes = *dtype_bytes(out.type.dtype, ce_.hidden_size);
    round_from_f32(out.type.dtype, sums(i), ce_.hidden_size, out.data + token * row_bytes);
  }

  // The row's sums = factor * sums + label_factor * the label's row of the weight.
  void subtract_label(int64_t i, float factor, float label_factor) {
    constexpr int64_t kPart = 256;  // whole blocks of every dtype
    float part[kPart];
    const GemmMatrix label = ce_.weight_rows(ce_.label(begin_ + i));
    for (int64_t begin = 0; begin < ce_.hidden_size; begin += kPart) {
      const int64_t count = std::min(kPart, ce_.hidden_size - begin);
      widen_to_f32(label.dtype, label.data, begin, count, part);
      float* to = sums(i) + begin;
      for (int64_t j = 0; j < count; ++j) to[j] = factor * to[j] + label_factor * part[j];
    }
  }

  CrossEntropy& ce_;
  int64_t begin_, rows_;
  RunningSoftmax* states_;
  float* sums_;  // [rows, hidden]
};

template <GemmUnit kUnit>
void run(const KernelCall& call) {
  CrossEntropy ce(call, kUnit);
  const TensorView& out = call.outputs[0];
  std::memset(out.data, 0, static_cast<size_t>(out.type.bytes()));
  std::fill_n(output_as<float>(call, 1), ce.tokens, 0.0f);
  std::fill_n(output_as<int32_t>(call, 2), ce.tokens, -1);
  for (int64_t begin = 0; begin < ce.trained; begin += kChunkRows) {
    Chunk(ce, begin, std::min(kChunkRows, ce.trained - begin)).run();
  }
}

// Capped logits lose what their gradient needs: serves those without a cap.
template <GemmUnit kUnit>
bool serves(const OpSite& site, const DeviceFacts& facts) {
  return serves_cross_entropy(site, facts, kUnit) && site.attrs.real("softcap") == 0;
}

template <GemmUnit kUnit>
int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  return cross_entropy_workspace_bytes(site, facts, site.inputs[0].shape[1] * 4, kUnit);
}

}  // namespace

TENON_UNIT_KERNELS("linear_cross_entropy_with_grad", linear_cross_entropy_with_grad_chunked,
                   linear_cross_entropy_with_grad_bf16_pairs, linear_cross_entropy_with_grad_bf16_tiles, 0.0)

}  // namespace tenon
