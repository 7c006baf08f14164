#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/philox.h"
#include "run/generator.h"

namespace tenon {
namespace {

int32_t most_likely(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// A uniform number in [0, 1) that belongs to (seed, draw).
double uniform(uint64_t seed, uint64_t draw) {
  const auto words = philox_block({static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}, 0, draw);
  return (static_cast<double>(words[0]) + static_cast<double>(words[1]) * 0x1p-32) * 0x1p-32;
}

}  // namespace

int32_t sample(std::span<const float> logits, const SamplingSettings& settings, uint64_t draw) {
  if (settings.temperature <= 0 || settings.top_k == 1) return most_likely(logits);
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const size_t keep =
      settings.top_k > 0 ? std::min(order.size(), static_cast<size_t>(settings.top_k)) : order.size();
  const auto likelier = [&](int32_t a, int32_t b) {
    const float la = logits[static_cast<size_t>(a)], lb = logits[static_cast<size_t>(b)];
    return la != lb ? la > lb : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(keep), order.end(), likelier);
  order.resize(keep);
  const double top = logits[static_cast<size_t>(order[0])];
  std::vector<double> weights(keep);
  for (size_t i = 0; i < keep; ++i) {
    weights[i] = std::exp((logits[static_cast<size_t>(order[i])] - top) / settings.temperature);
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  // The smallest set of most likely tokens whose share reaches top_p.
  size_t count = 0;
  double mass = 0;
  while (count < keep && (count == 0 || mass < settings.top_p * total)) mass += weights[count++];
  double left = uniform(settings.seed, draw) * mass;
  for (size_t i = 0; i < count; ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order[count - 1];
}

}  // namespace tenon
