// d table[vocab, hidden] f32: rows of dy [tokens, hidden] summed by ids [tokens] in token order
// (deterministic).
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& embedding_grad_op();
ValueId embedding_grad(Builder& builder, ValueId dy, ValueId ids, int64_t vocab);

}  // namespace tenon
