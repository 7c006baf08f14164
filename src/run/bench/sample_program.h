// Some ops of a program as a program of their own, for timing them in the order and with the memory that they
// have in the whole.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace tenon {

struct SampledProgram {
  Program program;           // named as the whole
  std::vector<int32_t> ops;  // of the whole, one for each op of `program`
};

// The ops that `chosen` (one entry an op) marks. Statics keep names, roles and data; what an op that is left
// out would compute becomes an input. Ops that only view what is there come along. Results that the whole
// keeps for ops that are left out are outputs, so that they keep memory of their own.
SampledProgram sample_program(const Program& whole, const std::vector<bool>& chosen);

}  // namespace tenon
