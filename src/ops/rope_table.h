// Angles of rotary position embedding (Su et al. 2021), computed once a step and shared by all layers:
// table[t, 0, i] = amplitude * cos(positions[t] * inv_freq[i]), table[t, 1, i] = the same with sin; f32
// [tokens, 2, pairs]. positions [tokens] i32, inv_freq [pairs] f32. amplitude is 1 but for scaled kinds
// (yarn).
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& rope_table_op();
ValueId rope_table(Builder& builder, ValueId positions, ValueId inv_freq, double amplitude = 1.0);

}  // namespace tenon
