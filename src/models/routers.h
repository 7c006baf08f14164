// Which routers of mixtures of experts are modules that adapters on all linear layers take.
#pragma once

#include <string>
#include <vector>

#include "models/model_spec.h"

namespace tenon {

// Module paths of the routers that are no linear layers in transformers, so that PEFT's "all-linear" does not
// take them.
std::vector<std::string> parameter_routers(const ModelSpec& spec);

}  // namespace tenon
