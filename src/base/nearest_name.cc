#include "base/nearest_name.h"

#include <algorithm>
#include <vector>

namespace tenon {
namespace {

// Slips that cost nothing: case, and '_' for '-'.
std::string folded(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '_') c = '-';
  }
  return out;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<int> before(width), last(width), current(width);
  for (size_t j = 0; j < width; ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = static_cast<int>(i);
    for (size_t j = 1; j < width; ++j) {
      const int substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, current);
  }
  return last[b.size()];
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  constexpr size_t kLongestName = 64;  // what is longer is not a slip of a name
  if (name.empty() || name.size() > kLongestName) return {};
  const std::string typed = folded(name);
  std::string_view best;
  int best_distance = 0;
  std::string_view beginning_of;
  int begins = 0;
  for (const std::string_view candidate : candidates) {
    const std::string known = folded(candidate);
    if (known.starts_with(typed)) {
      ++begins;
      beginning_of = candidate;
    }
    const int distance = edit_distance(typed, known);
    const int limit = std::max<int>(1, static_cast<int>(std::max(typed.size(), known.size())) / 3);
    if (distance > limit || distance >= static_cast<int>(std::max(typed.size(), known.size()))) continue;
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  if (best.empty() && begins == 1) return beginning_of;
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  const std::string_view nearest = nearest_name(name, candidates);
  return nearest.empty() ? std::string() : "did you mean '" + std::string(nearest) + "'?";
}

}  // namespace tenon
