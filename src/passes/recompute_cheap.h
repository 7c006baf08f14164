// What costs no matrix product is computed again for the backward pass rather than kept for it: gated
// activations and norms, from inputs that the backward pass keeps in any case. The same ops on the same
// inputs give the same bits, so gradients do not change by a bit.
#pragma once

#include "ir/program.h"

namespace tenon {

// Values of cheap ops are computed a second time just before the first backward op that reads them, where all
// of their inputs are read at that place or later anyway.
Program recompute_cheap(const Program& program);

}  // namespace tenon
