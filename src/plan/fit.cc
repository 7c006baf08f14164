#include "plan/fit.h"

#include <algorithm>

namespace tenon {

FitVerdict fit(int64_t needed_bytes, int64_t budget_bytes) {
  const int64_t shortfall = std::max<int64_t>(0, needed_bytes - budget_bytes);
  return {shortfall == 0, needed_bytes, budget_bytes, shortfall};
}

int64_t needed_bytes(const Plan& plan) {
  return plan.arena_bytes() + plan.external_bytes;
}

std::vector<FitSuggestion> suggest(std::span<const FitCandidate> candidates, int64_t budget_bytes) {
  std::vector<FitSuggestion> fitting;
  for (const FitCandidate& candidate : candidates) {
    const Result<int64_t> needed = candidate.needed_bytes();
    if (needed.ok() && *needed <= budget_bytes) fitting.push_back({candidate.description, *needed});
  }
  std::stable_sort(fitting.begin(), fitting.end(), [](const FitSuggestion& a, const FitSuggestion& b) {
    return a.needed_bytes > b.needed_bytes;
  });
  return fitting;
}

}  // namespace tenon
