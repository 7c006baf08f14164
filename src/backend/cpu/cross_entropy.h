// What the kernels of linear_cross_entropy and its gradients share: trained rows are gathered into chunks,
// the vocabulary is taken kChunkVocab at a time, and the logits of one such tile are all that ever exists.
#pragma once

#include <cstdint>
#include <span>

#include "backend/cpu/gemm.h"
#include "device/kernel.h"

namespace tenon {

inline constexpr int64_t kChunkRows = 1024;
inline constexpr int64_t kChunkVocab = 1024;

// One call, its inputs as the op lists them, and its workspace cut into parts.
struct CrossEntropy {
  explicit CrossEntropy(const KernelCall& call, GemmUnit unit = GemmUnit::f32);

  const KernelCall& call;
  GemmUnit unit;  // of its products
  int64_t tokens, hidden_size, vocab;
  int64_t trained = 0;  // tokens whose label is not negative
  float logit_scale, softcap;
  std::span<int32_t> rows;  // the trained tokens, in order: `trained` of them
  std::byte* gathered;      // hidden rows of a chunk, in hidden's dtype
  float* logits;            // [chunk rows, chunk vocabulary]
  std::byte* state;         // what a kernel keeps for each row of a chunk
  std::span<std::byte> gemm_workspace;

  int32_t label(int64_t trained_row) const;

  // Gathers rows [begin, end) of the trained ones and computes their logits for vocabulary [vocab_begin,
  // vocab_end), scaled but not capped.
  void gather(int64_t begin, int64_t end);
  void compute_logits(int64_t row_count, int64_t vocab_begin, int64_t vocab_end);
  // The same of the rows gathered from `begin` on, and turned into their gradient in place: dloss * (softmax
  // - onehot(label)) * the cap's slope * scale. For calls whose inputs 3 and 4 are lse and dloss.
  void compute_logit_gradients(int64_t begin, int64_t row_count, int64_t vocab_begin, int64_t vocab_end);
  GemmMatrix weight_rows(int64_t vocab_begin) const;
};

// Bytes of each row's state at most.
inline constexpr int64_t kCrossEntropyStateBytes = 32;

bool serves_cross_entropy(const OpSite& site, const DeviceFacts& facts, GemmUnit unit = GemmUnit::f32);

// `extra_row_bytes`: state of a chunk row beyond kCrossEntropyStateBytes. The workspace also fits the second
// product of a gradient (which reads the weight, or the gathered rows, untransposed).
int64_t cross_entropy_workspace_bytes(const OpSite& site, const DeviceFacts& facts, int64_t extra_row_bytes,
                                      GemmUnit unit = GemmUnit::f32);

// The log of the softmax's sum, built chunk by chunk.
struct RunningSoftmax {
  double sum = 0;         // of exp(z - largest)
  double others = 0;      // the same without the label's, where weights are asked for
  float largest = 0;      // of the capped logits
  float largest_raw = 0;  // of the logits before the cap, whose order does not suffer from its flat ends
  float label_logit = 0;
  int32_t predicted = -1;  // the lowest index of the largest logit; -1: nothing seen
};
static_assert(sizeof(RunningSoftmax) <= kCrossEntropyStateBytes);

// Takes a chunk of one row's scaled logits, starting at vocabulary index `first`; caps them in place.
void add_logits(float* logits, int64_t count, int64_t first, int32_t label, float softcap,
                RunningSoftmax& state);

// The same without a cap, after which the logits are exp(z - largest), and zero at the label. Returns what
// sums of earlier chunks of such weights are to be multiplied by, where `largest` has grown.
float logits_to_weights(float* logits, int64_t count, int64_t first, int32_t label, RunningSoftmax& state);

}  // namespace tenon
