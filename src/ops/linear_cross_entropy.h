// Cross-entropy of the vocabulary head, logits never whole: z = softcap(logit_scale * hidden[t] · weight^T)
// in f32, loss[t] = lse(z) - z[labels[t]], 0 where labels[t] is negative (then the row is not computed at
// all). hidden [tokens, hidden] , weight [vocab, hidden] in any dtype, labels [tokens] i32. Outputs: loss
// [tokens] f32, lse [tokens] f32 (0 for untrained rows), predicted [tokens] i32 (the lowest index of the
// largest logit; -1 likewise).
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& linear_cross_entropy_op();

struct LinearCrossEntropyOptions {
  double logit_scale = 1.0;
  double softcap = 0.0;
};
struct LinearCrossEntropyOutputs {
  ValueId loss, lse, predicted;
};
LinearCrossEntropyOutputs linear_cross_entropy(Builder& builder, ValueId hidden, ValueId weight,
                                               ValueId labels, const LinearCrossEntropyOptions& options);

}  // namespace tenon
