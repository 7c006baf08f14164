#include "run/checkpoint_interval.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace tenon {
namespace {

template <typename T>
bool parse_whole(std::string_view text, T& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.empty();
}

}  // namespace

Result<CheckpointInterval> parse_checkpoint_interval(std::string_view text) {
  constexpr std::string_view kMinutes = "min";
  CheckpointInterval interval;
  if (text.ends_with(kMinutes)) {
    double minutes = 0;
    if (parse_whole(text.substr(0, text.size() - kMinutes.size()), minutes) && std::isfinite(minutes) &&
        minutes > 0) {
      interval.seconds = minutes * 60;
      return interval;
    }
  } else if (parse_whole(text, interval.steps) && interval.steps >= 0) {
    return interval;
  }
  return bad_argument(fmt::format("'{}' is neither a number of steps nor of minutes", text),
                      "--checkpoint-every", "Write 500 for steps, 10min for minutes, or 0 for the end only.");
}

}  // namespace tenon
