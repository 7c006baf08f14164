// Loss and d hidden together: the logits of a chunk of rows are kept for the whole vocabulary, tile by tile,
// until the softmax's sum is known, then turned into their gradient in place and multiplied by the weight.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/convert.h"
#include "backend/cpu/cross_entropy.h"
#include "backend/cpu/gemm_tensor.h"
#include "backend/cpu/kernel_support.h"

namespace tenon {
namespace {

// Rows whose logits are kept at a time: each tile of the weight is packed once for all of them. This is on
// top of every activation of the step, so it decides the step's peak; in f32 packing a weight costs
// 4% of multiplying it by 256 rows, 8% of 144, and bf16 units multiply several times as fast.
int64_t kept_rows(int64_t tokens, int64_t vocab, GemmUnit unit) {
  constexpr int64_t kFewestRows = 128;
  const int64_t bytes = unit == GemmUnit::f32 ? 27 << 20 : 192 << 20;
  const int64_t most = std::clamp(bytes / (4 * std::max<int64_t>(vocab, 1)), kFewestRows, kChunkRows);
  return std::min(tokens, most);
}

int64_t kept_bytes(const Type& hidden, const Type& weight, GemmUnit unit) {
  return kept_rows(hidden.shape[0], weight.shape[0], unit) * weight.shape[0] * 4;
}

// One chunk of trained rows.
class Chunk {
 public:
  Chunk(CrossEntropy& ce, float* kept, int64_t begin, int64_t rows)
      : ce_(ce),
        kept_(kept),
        begin_(begin),
        rows_(rows),
        states_(reinterpret_cast<RunningSoftmax*>(ce.state)),
        sums_(reinterpret_cast<float*>(ce.state + rows * kCrossEntropyStateBytes)) {}

  void run() {
    std::fill_n(states_, rows_, RunningSoftmax{});
    ce_.gather(begin_, begin_ + rows_);
    for (int64_t first = 0; first < ce_.vocab; first += kChunkVocab) add_tile(first);
    for (int64_t i = 0; i < rows_; ++i) finish_loss(i);
    for (int64_t first = 0; first < ce_.vocab; first += kChunkVocab) add_gradient(first);
    for (int64_t i = 0; i < rows_; ++i) finish_gradient(i);
  }

 private:
  int64_t columns(int64_t first) const { return std::min(kChunkVocab, ce_.vocab - first); }
  float* tile(int64_t first) const { return kept_ + first * rows_; }
  int32_t token(int64_t i) const { return ce_.rows[static_cast<size_t>(begin_ + i)]; }

  void add_tile(int64_t first) {
    const int64_t count = columns(first);
    ce_.logits = tile(first);
    ce_.compute_logits(rows_, first, first + count);
    ce_.call.threads->parallel_for(rows_, 1, [&](Range range) {
      for (int64_t i = range.begin; i < range.end; ++i) {
        add_logits(tile(first) + i * count, count, first, ce_.label(begin_ + i), 0, states_[i]);
      }
    });
  }

  void finish_loss(int64_t i) {
    RunningSoftmax& state = states_[i];
    const double lse = static_cast<double>(state.largest) + std::log(state.sum);
    output_as<float>(ce_.call, 1)[token(i)] = static_cast<float>(lse - state.label_logit);
    output_as<int32_t>(ce_.call, 2)[token(i)] = state.predicted;
    state.sum = lse;
  }

  void add_gradient(int64_t first) {
    const int64_t count = columns(first);
    const float* dloss = input_as<float>(ce_.call, 3);
    ce_.call.threads->parallel_for(rows_, 1, [&](Range range) {
      for (int64_t i = range.begin; i < range.end; ++i) {
        logits_to_gradient(tile(first) + i * count, count, first, ce_.label(begin_ + i), 0, ce_.logit_scale,
                           static_cast<float>(states_[i].sum), dloss[token(i)]);
      }
    });
    Gemm g;
    g.unit = ce_.unit;
    g.m = rows_;
    g.n = ce_.hidden_size;
    g.k = count;
    g.a = {reinterpret_cast<std::byte*>(tile(first)), DType::f32, count};
    g.b = ce_.weight_rows(first);
    g.out = reinterpret_cast<std::byte*>(sums_);
    g.out_stride = ce_.hidden_size;
    if (first > 0) g.addend = {g.out, DType::f32, ce_.hidden_size};
    gemm(g, ce_.gemm_workspace, *ce_.call.threads);
  }

  void finish_gradient(int64_t i) {
    const TensorView& out = ce_.call.outputs[0];
    const int64_t row_bytes = *dtype_bytes(out.type.dtype, ce_.hidden_size);
    round_from_f32(out.type.dtype, sums_ + i * ce_.hidden_size, ce_.hidden_size,
                   out.data + token(i) * row_bytes);
  }

  CrossEntropy& ce_;
  float* kept_;  // [rows, vocabulary], a tile of kChunkVocab columns after the other
  int64_t begin_, rows_;
  RunningSoftmax* states_;
  float* sums_;  // [rows, hidden]
};

template <GemmUnit kUnit>
void run(const KernelCall& call) {
  const int64_t most = kept_rows(call.inputs[0].type.shape[0], call.inputs[1].type.shape[0], kUnit);
  CrossEntropy ce(call, kUnit, most);
  const TensorView& out = call.outputs[0];
  std::memset(out.data, 0, static_cast<size_t>(out.type.bytes()));
  std::fill_n(output_as<float>(call, 1), ce.tokens, 0.0f);
  std::fill_n(output_as<int32_t>(call, 2), ce.tokens, -1);
  const int64_t kept = kept_bytes(call.inputs[0].type, call.inputs[1].type, kUnit);
  float* logits = reinterpret_cast<float*>(call.workspace.data() + call.workspace.size() - kept);
  for (int64_t begin = 0; begin < ce.trained; begin += most) {
    Chunk(ce, logits, begin, std::min(most, ce.trained - begin)).run();
  }
}

// Capped logits lose what their gradient needs: serves those without a cap.
template <GemmUnit kUnit>
bool serves(const OpSite& site, const DeviceFacts& facts) {
  return serves_cross_entropy(site, facts, kUnit) && site.attrs.real("softcap") == 0;
}

template <GemmUnit kUnit>
int64_t workspace_bytes(const OpSite& site, const DeviceFacts& facts) {
  const int64_t row_bytes = site.inputs[0].shape[1] * 4;
  const int64_t most = kept_rows(site.inputs[0].shape[0], site.inputs[1].shape[0], kUnit);
  return cross_entropy_workspace_bytes(site, facts, row_bytes, kUnit, most) +
         kept_bytes(site.inputs[0], site.inputs[1], kUnit);
}

}  // namespace

TENON_UNIT_KERNELS("linear_cross_entropy_with_grad", linear_cross_entropy_with_grad_chunked,
                   linear_cross_entropy_with_grad_bf16_pairs, linear_cross_entropy_with_grad_bf16_tiles, 0.0)

}  // namespace tenon
