#include "base/iso_time.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>

namespace tenon {
namespace {

// Takes `digits` digits from the front; nothing where they are not there.
std::optional<int> take_number(std::string_view& text, size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  for (const char c : text.substr(0, digits)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// Seconds since midnight of "12:34", "12:34:56" or "12:34:56.789".
std::optional<int64_t> take_clock(std::string_view& text) {
  const auto hour = take_number(text, 2);
  if (!hour || !take(text, ':')) return std::nullopt;
  const auto minute = take_number(text, 2);
  int second = 0;
  if (minute && take(text, ':')) {
    const auto given = take_number(text, 2);
    if (!given) return std::nullopt;
    second = *given;
    if (take(text, '.'))
      while (!text.empty() && text[0] >= '0' && text[0] <= '9') text.remove_prefix(1);
  }
  if (!minute || *hour > 23 || *minute > 59 || second > 60) return std::nullopt;
  return *hour * 3600 + *minute * 60 + second;
}

std::optional<int64_t> take_zone(std::string_view& text) {
  if (text.empty() || take(text, 'Z')) return 0;
  const int sign = text[0] == '-' ? -1 : 1;
  if (!take(text, '+') && !take(text, '-')) return std::nullopt;
  const auto hours = take_number(text, 2);
  take(text, ':');
  const auto minutes = text.empty() ? std::optional(0) : take_number(text, 2);
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  return sign * (*hours * 3600 + *minutes * 60);
}

std::optional<IsoTime> parse(std::string_view text) {
  const auto year = take_number(text, 4);
  const bool dash = take(text, '-');
  const auto month = take_number(text, 2);
  const bool second_dash = take(text, '-');
  const auto day = take_number(text, 2);
  if (!year || !dash || !month || !second_dash || !day) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  IsoTime time;
  time.unix_seconds = std::chrono::sys_days(date).time_since_epoch().count() * int64_t{86400};
  if (text.empty()) return time;
  if (!take(text, 'T') && !take(text, ' ')) return std::nullopt;
  const auto clock = take_clock(text);
  const auto zone = clock ? take_zone(text) : std::nullopt;
  if (!zone || !text.empty()) return std::nullopt;
  time.unix_seconds += *clock - *zone;
  time.utc_offset_seconds = *zone;
  return time;
}

}  // namespace

Result<IsoTime> parse_iso_time(std::string_view text) {
  if (const auto time = parse(text)) return *time;
  return bad_argument(fmt::format("'{}' is not a time", text), {}, "Write it as 2024-07-26T12:34:56Z.");
}

std::string iso_time_text(int64_t unix_seconds) {
  const std::chrono::sys_seconds time{std::chrono::seconds(unix_seconds)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

}  // namespace tenon
