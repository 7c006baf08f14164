#include "base/bytes.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

namespace tenon {
namespace {

constexpr std::string_view kHint = "Write a number and a unit, for example 8GiB, 500MB or 1.5G.";

std::optional<double> unit_bytes(std::string_view unit) {
  std::string lower;
  for (char c : unit) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower.empty() || lower == "b") return 1.0;
  const size_t power = std::string_view("kmgt").find(lower[0]);
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = std::string_view(lower).substr(1);
  const double exponent = static_cast<double>(power + 1);
  if (rest.empty() || rest == "ib") return std::pow(1024.0, exponent);
  if (rest == "b") return std::pow(1000.0, exponent);
  return std::nullopt;
}

}  // namespace

Result<int64_t> parse_bytes(std::string_view text) {
  const std::string subject(text);
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !(number >= 0)) return bad_argument("not a size", subject, std::string(kHint));
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const auto scale = unit_bytes(unit);
  if (!scale) return bad_argument("not a unit of size", subject, std::string(kHint));
  const double bytes = number * *scale;
  if (!(bytes < 0x1p62)) return bad_argument("a size beyond 4 EiB", subject, std::string(kHint));
  return static_cast<int64_t>(bytes);
}

std::string format_bytes(int64_t bytes) {
  static constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  const double magnitude = std::abs(static_cast<double>(bytes));
  size_t unit = 0;
  double scale = 1;
  while (unit + 1 < kUnits.size() && magnitude >= scale * 1024) {
    scale *= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.2f} {}", static_cast<double>(bytes) / scale, kUnits[unit]);
}

}  // namespace tenon
