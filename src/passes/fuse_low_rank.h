// Joins a product and a low-rank product that is added to it into one op: forward, a linear layer and its
// LoRA branch; backward, the two parts of the gradient with respect to the layer's input. The sum is not
// written and read again.
#pragma once

#include "ir/program.h"

namespace tenon {

// Where the first product is read by the second alone, as its addend, their types agree, and there are rows
// enough for a packed product (decoding has its own kernels). The sum is rounded once where it was twice.
Program fuse_low_rank(const Program& program);

}  // namespace tenon
