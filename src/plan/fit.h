// Does it fit, and what would? Compares planned bytes with a budget; making the other plans is run/'s.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"

namespace tenon {

struct FitVerdict {
  bool fits = true;
  int64_t needed_bytes = 0;
  int64_t budget_bytes = 0;
  int64_t shortfall_bytes = 0;  // needed beyond the budget; 0 where it fits
};

FitVerdict fit(int64_t needed_bytes, int64_t budget_bytes);

// Both arenas and the mapped files that steps read, since a step that waits for the disk does not fit.
int64_t needed_bytes(const Plan& plan);

// A setting that could be used instead, and what it would need. `needed_bytes` fails where it is impossible.
struct FitCandidate {
  std::string description;  // "recompute every block", "micro-batch of 1024 tokens"
  std::function<Result<int64_t>()> needed_bytes;
};

struct FitSuggestion {
  std::string description;
  int64_t needed_bytes = 0;
};

// The candidates that fit, nearest to the budget first (ties in the order given). Impossible ones are left
// out.
std::vector<FitSuggestion> suggest(std::span<const FitCandidate> candidates, int64_t budget_bytes);

}  // namespace tenon
