#include "io/partial_name.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tenon {
namespace {

constexpr std::string_view kSuffix = ".partial";

}  // namespace

std::string partial_name(std::string_view path) {
  static std::atomic<int64_t> next{0};
  return fmt::format("{}.{}-{}{}", path, ::getpid(), next.fetch_add(1), kSuffix);
}

bool is_partial_name(std::string_view name) {
  if (!name.ends_with(kSuffix)) return false;
  name.remove_suffix(kSuffix.size());
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  const std::string_view ids = name.substr(dot + 1);
  const size_t dash = ids.find('-');
  const auto digits = [](std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  return dash != std::string_view::npos && digits(ids.substr(0, dash)) && digits(ids.substr(dash + 1));
}

}  // namespace tenon
