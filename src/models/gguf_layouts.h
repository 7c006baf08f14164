// Where a GGUF file keeps weights that are not in one tensor of their name, and what llama.cpp's converter
// does to values.
#pragma once

#include <string_view>
#include <vector>

#include "io/checkpoint.h"
#include "models/model_spec.h"

namespace tenon {

// Where a weight lies in a GGUF file, if not in one tensor of its name: experts, whose gate and up are
// tensors of their own, grouped projections, the projection of latents, delta rules whose heads are in
// another order, projections between streams, parameters that are metadata. Empty: in one tensor.
std::vector<StoredBlock> gguf_blocks(const ModelSpec& spec, const Checkpoint& checkpoint,
                                     std::string_view name);

// Takes the 1 back out of the norms' offsets where the file has it in the weights.
void use_shifted_norms(ModelSpec& spec);

}  // namespace tenon
