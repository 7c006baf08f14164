// Puts linear_cross_entropy_with_grad in the place of linear_cross_entropy and its gradient with respect to
// hidden, so that the logits of the vocabulary are computed once in a training step.
#pragma once

#include "ir/program.h"

namespace tenon {

// Where the log of the softmax's sum is read by that gradient alone (a frozen head), nothing reads the loss
// before it, and the head has no soft cap; elsewhere nothing changes. The kernels do the same arithmetic.
Program fuse_loss_gradient(const Program& program);

}  // namespace tenon
