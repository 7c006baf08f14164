// As rope_table, with frequencies that depend on the `length` [tokens] i32 of each token's sequence. Up to
// `long_from` tokens inv_freq serves; beyond, long_inv_freq (longrope, Ding et al. 2024) or, with
// dynamic_factor f > 0, theta * (f * length / long_from - (f - 1))^(d / (d - 2)) in place of theta, with d =
// 2 * pairs (dynamic NTK).
#pragma once

#include "ir/builder.h"

namespace tenon {

const OpDef& rope_table_by_length_op();

struct LengthOptions {
  int64_t long_from = 0;
  double dynamic_factor = 0;
  double theta = 0;
  double amplitude = 1;
};
ValueId rope_table_by_length(Builder& builder, ValueId positions, ValueId length, ValueId inv_freq,
                             ValueId long_inv_freq, const LengthOptions& options);

}  // namespace tenon
