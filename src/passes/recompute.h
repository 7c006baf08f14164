// Gradient checkpointing (Chen et al. 2016) as a pass: for the chosen blocks, what the forward pass computed
// is not kept for the backward pass but computed again just before it is needed, from the block's input. The
// same ops on the same inputs give the same bits, so gradients do not change by a bit.
#pragma once

#include <cstdint>

#include "ir/program.h"

namespace tenon {

// Blocks of a program: 1 + the largest block of an op; 0 where none has one.
int32_t block_count(const Program& program);

// Recomputes blocks 0 .. count - 1. The first blocks are kept longest, so recomputing them saves the most.
Program recompute_blocks(const Program& program, int32_t count);

}  // namespace tenon
