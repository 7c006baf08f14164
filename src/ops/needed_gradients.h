// What gradients share that come from one op for several inputs. For ops/ alone.
#pragma once

#include <span>
#include <vector>

#include "ir/op_def.h"

namespace tenon {

bool any_needed(const GradientSite& site);
// Gradients by input: `found`, those of the first inputs in order, where they are needed.
std::vector<ValueId> needed_gradients(const GradientSite& site, std::span<const ValueId> found);

}  // namespace tenon
