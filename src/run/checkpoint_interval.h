// How often a run is saved, as text: "500" optimiser steps, "10min" minutes, "0" never on its way.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace tenon {

// At most one is above 0.
struct CheckpointInterval {
  int64_t steps = 0;
  double seconds = 0;
};

// Error: bad_argument ("--checkpoint-every").
Result<CheckpointInterval> parse_checkpoint_interval(std::string_view text);

}  // namespace tenon
