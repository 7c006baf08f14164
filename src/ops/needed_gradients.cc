#include "ops/needed_gradients.h"

#include <algorithm>

namespace tenon {

bool any_needed(const GradientSite& site) {
  return std::any_of(site.needed.begin(), site.needed.end(), [](bool needed) { return needed; });
}

std::vector<ValueId> needed_gradients(const GradientSite& site, std::span<const ValueId> found) {
  std::vector<ValueId> gradients(site.op.inputs.size());
  for (size_t i = 0; i < found.size(); ++i) {
    if (site.needed[i]) gradients[i] = found[i];
  }
  return gradients;
}

}  // namespace tenon
