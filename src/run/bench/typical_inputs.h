// What a program's integer inputs hold in a run as it mostly is, for timing it without a data set.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace tenon {

// Of the static `input` of `program`, which has one stream where it has any. Packed sequences are of
// `sequence_tokens` tokens, one after the other; those of a program with caches begin at `first_position`.
// Ids are spread over the vocabulary, pages lie in order. Empty: zeros are as good.
std::vector<int32_t> typical_input(const Program& program, ValueId input, int64_t sequence_tokens,
                                   int64_t first_position);

}  // namespace tenon
