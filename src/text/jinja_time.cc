// Civil dates from a count of seconds (Howard Hinnant's days_from_civil, inverted), and the codes of
// strftime.
#include "text/jinja_time.h"

#include <fmt/format.h>

#include <array>

namespace tenon::jinja {
namespace {

struct Date {
  int64_t year = 1970;
  int month = 1;  // from 1
  int day = 1;    // from 1
  int hour = 0;
  int minute = 0;
  int second = 0;
  int week_day = 0;  // from Sunday
  int year_day = 1;  // from 1
};

constexpr std::array<const char*, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                              "Thursday", "Friday", "Saturday"};
constexpr std::array<const char*, 12> kMonths = {"January",   "February", "March",    "April",
                                                 "May",       "June",     "July",     "August",
                                                 "September", "October",  "November", "December"};

bool is_leap(int64_t year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

Date civil(int64_t seconds) {
  int64_t days = seconds / 86400;
  int64_t rest = seconds % 86400;
  if (rest < 0) {
    rest += 86400;
    --days;
  }
  Date out;
  out.hour = static_cast<int>(rest / 3600);
  out.minute = static_cast<int>(rest / 60 % 60);
  out.second = static_cast<int>(rest % 60);
  out.week_day = static_cast<int>(((days + 4) % 7 + 7) % 7);
  // Years that start in March make the leap day the last of its year; an era is 400 of them.
  const int64_t shifted = days + 719468;
  const int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
  const int64_t day_of_era = shifted - era * 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month = (5 * day_of_year + 2) / 153;
  out.day = static_cast<int>(day_of_year - (153 * month + 2) / 5 + 1);
  out.month = static_cast<int>(month < 10 ? month + 3 : month - 9);
  out.year = year_of_era + era * 400 + (out.month <= 2 ? 1 : 0);
  constexpr std::array<int, 12> kBefore = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  out.year_day =
      kBefore[static_cast<size_t>(out.month - 1)] + out.day + (out.month > 2 && is_leap(out.year) ? 1 : 0);
  return out;
}

int weeks_in(int64_t year) {
  const auto week_day = [](int64_t y) { return (y + y / 4 - y / 100 + y / 400) % 7; };
  return week_day(year) == 4 || week_day(year - 1) == 3 ? 53 : 52;
}

// The ISO 8601 week and the year it belongs to.
std::pair<int64_t, int> iso_week(const Date& date) {
  const int week_day = date.week_day == 0 ? 7 : date.week_day;
  const int week = (date.year_day - week_day + 10) / 7;
  if (week < 1) return {date.year - 1, weeks_in(date.year - 1)};
  if (week > weeks_in(date.year)) return {date.year + 1, 1};
  return {date.year, week};
}

int hour12(const Date& date) {
  return date.hour % 12 == 0 ? 12 : date.hour % 12;
}

std::string number(int64_t value, char flag, int width, char fill = '0') {
  if (flag == '-') return fmt::format("{}", value);
  if (flag == '_') fill = ' ';
  if (flag == '0') fill = '0';
  return fill == ' ' ? fmt::format("{:{}}", value, width) : fmt::format("{:0{}}", value, width);
}

std::string one_code(const Date& d, int64_t seconds, char code, char flag) {
  const char* day = kDays[static_cast<size_t>(d.week_day)];
  const char* month = kMonths[static_cast<size_t>(d.month - 1)];
  const int monday_day = (d.week_day + 6) % 7;
  switch (code) {
    case 'a':
      return std::string(day).substr(0, 3);
    case 'A':
      return day;
    case 'b':
    case 'h':
      return std::string(month).substr(0, 3);
    case 'B':
      return month;
    case 'c':
      return fmt::format("{:.3} {:.3} {:2} {:02}:{:02}:{:02} {}", day, month, d.day, d.hour, d.minute,
                         d.second, d.year);
    case 'C':
      return number(d.year / 100, flag, 2);
    case 'd':
      return number(d.day, flag, 2);
    case 'D':
    case 'x':
      return fmt::format("{:02}/{:02}/{:02}", d.month, d.day, d.year % 100);
    case 'e':
      return number(d.day, flag, 2, ' ');
    case 'f':
      return "000000";
    case 'F':
      return fmt::format("{}-{:02}-{:02}", d.year, d.month, d.day);
    case 'G':
      return fmt::format("{}", iso_week(d).first);
    case 'g':
      return number(iso_week(d).first % 100, flag, 2);
    case 'H':
      return number(d.hour, flag, 2);
    case 'I':
      return number(hour12(d), flag, 2);
    case 'j':
      return number(d.year_day, flag, 3);
    case 'k':
      return number(d.hour, flag, 2, ' ');
    case 'l':
      return number(hour12(d), flag, 2, ' ');
    case 'm':
      return number(d.month, flag, 2);
    case 'M':
      return number(d.minute, flag, 2);
    case 'n':
      return "\n";
    case 'p':
      return d.hour < 12 ? "AM" : "PM";
    case 'P':
      return d.hour < 12 ? "am" : "pm";
    case 'r':
      return fmt::format("{:02}:{:02}:{:02} {}", hour12(d), d.minute, d.second, d.hour < 12 ? "AM" : "PM");
    case 'R':
      return fmt::format("{:02}:{:02}", d.hour, d.minute);
    case 's':
      return fmt::format("{}", seconds);
    case 'S':
      return number(d.second, flag, 2);
    case 't':
      return "\t";
    case 'T':
    case 'X':
      return fmt::format("{:02}:{:02}:{:02}", d.hour, d.minute, d.second);
    case 'u':
      return fmt::format("{}", d.week_day == 0 ? 7 : d.week_day);
    case 'U':
      return number((d.year_day + 6 - d.week_day) / 7, flag, 2);
    case 'V':
      return number(iso_week(d).second, flag, 2);
    case 'w':
      return fmt::format("{}", d.week_day);
    case 'W':
      return number((d.year_day + 6 - monday_day) / 7, flag, 2);
    case 'y':
      return number(d.year % 100, flag, 2);
    case 'Y':
      return number(d.year, flag, 1);
    case 'z':
    case 'Z':
      return "";
    case '%':
      return "%";
    default:
      return std::string("%") + code;
  }
}

}  // namespace

std::string format_time(Runtime& runtime, int64_t seconds, std::string_view format) {
  constexpr int64_t kLastYear =
      253402300800;  // the start of year 10000, which Python's datetime stops before
  if (seconds < -62135596800 || seconds >= kLastYear)
    fail_value("the clock is not within the years 1 to 9999");
  const Date date = civil(seconds);
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    runtime.charge(1);
    if (format[i] != '%' || i + 1 >= format.size()) {
      out += format[i];
      continue;
    }
    char code = format[++i];
    char flag = '\0';
    if ((code == '-' || code == '_' || code == '0') && i + 1 < format.size()) {
      flag = code;
      code = format[++i];
    }
    out += one_code(date, seconds, code, flag);
  }
  return out;
}

}  // namespace tenon::jinja
