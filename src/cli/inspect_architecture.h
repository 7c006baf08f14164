// What `tenon inspect` says of a model's architecture: its sizes, and whether Tenon can run it.
#pragma once

#include "base/json.h"
#include "io/checkpoint.h"

namespace tenon {

// Family, sizes, attention, cache bytes a token; or "supported": the reason why not. Tensors that nothing
// reads are named where the weights are there.
Json architecture_facts(const Checkpoint& checkpoint);

}  // namespace tenon
