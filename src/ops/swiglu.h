// out = silu(gate) * up (Shazeer 2020); shapes and dtypes equal, computed in f32, rounded once.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& swiglu_op();
ValueId swiglu(Builder& builder, ValueId gate, ValueId up);

}  // namespace tenon
