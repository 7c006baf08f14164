// What families of the delta rule share in their files.
#pragma once

#include <string>

#include "models/model_spec.h"

namespace tenon {

// The convolution of q, k and v is one module, and three tensors below `path` in the file, wherever they are
// cut.
void split_stored_conv(ModelSpec& spec, const DeltaSpec& delta, const std::string& path);

}  // namespace tenon
