#include "base/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/checked_math.h"

namespace tenon {

std::optional<int64_t> Shape::checked_elements() const {
  int64_t n = 1;
  for (int64_t d : dims()) {
    if (d < 0) return std::nullopt;
    const auto product = checked_mul(n, d);
    if (!product) return std::nullopt;
    n = *product;
  }
  return n;
}

std::string Shape::text() const {
  return fmt::format("[{}]", fmt::join(dims(), ", "));
}

}  // namespace tenon
