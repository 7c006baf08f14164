// out[t] = table[ids[t]], rounded to `dtype`; table [vocab, hidden] in any dtype, ids [tokens] i32.
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& embedding_op();
ValueId embedding(Builder& builder, ValueId table, ValueId ids, DType dtype);

}  // namespace tenon
