// Reverse-mode differentiation as a pass: appends the ops that compute gradients, from each op's own rule or,
// where it has none, through its plain expansion. Only what leads to a requested gradient is built.
#pragma once

#include <span>
#include <vector>

#include "ir/program.h"

namespace tenon {

// `seed` is the gradient of the result with respect to `of`, of its type. Returns the gradient of each of
// `wrt`, with its shape; an invalid id where `of` does not depend on it. Gradients of f32 values are f32.
std::vector<ValueId> differentiate(Program& program, ValueId of, ValueId seed, std::span<const ValueId> wrt);

}  // namespace tenon
