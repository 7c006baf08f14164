// Checks a Program's own rules. Runs after every pass; a failure is a bug of the pass.
#pragma once

#include "base/error.h"
#include "ir/program.h"

namespace tenon {

// SSA (each value produced once, before its uses), types as the shape rules say, unique names of statics and
// outputs, and no read of a value after an op updated it in place.
Status verify(const Program& program);

}  // namespace tenon
