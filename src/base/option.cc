#include "base/option.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/bytes.h"
#include "base/nearest_name.h"

namespace tenon {
namespace {

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Error wrong(const Option& option, std::string message, std::string hint = {}) {
  return bad_argument(std::move(message), std::string(option.name), std::move(hint));
}

Status check_range(const Option& option, double value, std::string_view text) {
  if (option.range.contains(value)) return {};
  const std::string range = option.range.text();
  if (range.empty()) return wrong(option, fmt::format("{} is not a finite number", text));
  return wrong(option, fmt::format("{} is out of range: it must be {}", text, range));
}

Status check_choice(const Option& option, std::string_view text) {
  if (option.choices.empty()) return {};
  for (const std::string_view choice : option.choices)
    if (choice == text) return {};
  std::string hint = did_you_mean(text, option.choices);
  return wrong(option, fmt::format("'{}' is not one of {}", text, fmt::join(option.choices, ", ")), hint);
}

// One overload a type of variable: reads `text` into it, unchecked against the range.
Status assign(const Option& option, bool& variable, std::string_view text) {
  if (text != "true" && text != "false")
    return wrong(option, fmt::format("'{}' is neither true nor false", text));
  variable = text == "true";
  return {};
}

Status assign(const Option& option, int64_t& variable, std::string_view text) {
  const auto value = parse_number<int64_t>(text);
  if (!value) return wrong(option, fmt::format("'{}' is not a whole number", text));
  RETURN_IF_ERROR(check_range(option, static_cast<double>(*value), text));
  variable = *value;
  return {};
}

Status assign(const Option& option, double& variable, std::string_view text) {
  const auto value = parse_number<double>(text);
  if (!value) return wrong(option, fmt::format("'{}' is not a number", text));
  RETURN_IF_ERROR(check_range(option, *value, text));
  variable = *value;
  return {};
}

Status assign(const Option& option, std::string& variable, std::string_view text) {
  RETURN_IF_ERROR(check_choice(option, text));
  variable = text;
  return {};
}

Status assign(const Option&, std::optional<std::string>& variable, std::string_view text) {
  variable = text;
  return {};
}

Status assign(const Option& option, ByteSize& variable, std::string_view text) {
  auto size = parse_bytes(text);
  if (!size.ok()) return std::move(size).error().within(option.name);
  variable.bytes = *size;
  return {};
}

Status assign(const Option& option, StringList& variable, std::string_view text) {
  if (option.repeatable) {
    variable.emplace_back(text);
    return {};
  }
  StringList values;
  if (!trimmed(text).empty()) {
    for (const std::string_view part : split(text, ',')) {
      if (part.empty()) return wrong(option, fmt::format("'{}' has an empty element", text));
      values.emplace_back(part);
    }
  }
  variable = std::move(values);
  return {};
}

Status assign(const Option& option, IntegerMap& variable, std::string_view text) {
  IntegerMap values;
  for (const std::string_view part :
       trimmed(text).empty() ? std::vector<std::string_view>() : split(text, ',')) {
    const size_t equals = part.rfind('=');
    const auto value = equals == std::string_view::npos
                           ? std::nullopt
                           : parse_number<int64_t>(trimmed(part.substr(equals + 1)));
    if (!value || equals == 0) return wrong(option, fmt::format("'{}' is not of the form name=number", part));
    RETURN_IF_ERROR(check_range(option, static_cast<double>(*value), part));
    if (!values.emplace(trimmed(part.substr(0, equals)), *value).second)
      return wrong(option, fmt::format("'{}' is given twice", trimmed(part.substr(0, equals))));
  }
  variable = std::move(values);
  return {};
}

struct TextOf {
  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const int64_t* value) const { return std::to_string(*value); }
  std::string operator()(const double* value) const { return number_text(*value); }
  std::string operator()(const std::string* value) const { return *value; }
  std::string operator()(const std::optional<std::string>* value) const { return value->value_or(""); }
  std::string operator()(const ByteSize* value) const { return byte_size_text(*value); }
  std::string operator()(const StringList* value) const { return fmt::format("{}", fmt::join(*value, ",")); }
  std::string operator()(const IntegerMap* value) const {
    std::string text;
    for (const auto& [name, number] : *value)
      text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, number);
    return text;
  }
};

}  // namespace

std::string byte_size_text(ByteSize size) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (size.bytes != 0 && size.bytes % 1024 == 0 && unit + 1 < kUnits.size()) {
    size.bytes /= 1024;
    ++unit;
  }
  return size.bytes == 0 ? "0" : fmt::format("{}{}", size.bytes, kUnits[unit]);
}

bool NumberRange::contains(double value) const {
  return std::isfinite(value) && (min_open ? value > min : value >= min) &&
         (max_open ? value < max : value <= max);
}

std::string NumberRange::text() const {
  std::string text;
  if (std::isfinite(min)) text = fmt::format("{} {}", min_open ? "above" : "at least", number_text(min));
  if (std::isfinite(max))
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : " and ", max_open ? "below" : "at most", number_text(max));
  return text;
}

Status set_option(const Option& option, std::string_view text) {
  return std::visit([&](auto* variable) { return assign(option, *variable, text); }, option.target);
}

Status check_option(const Option& option) {
  const std::string text = option_text(option);
  if (const auto* number = std::get_if<int64_t*>(&option.target))
    return check_range(option, static_cast<double>(**number), text);
  if (const auto* number = std::get_if<double*>(&option.target)) return check_range(option, **number, text);
  if (std::holds_alternative<std::string*>(option.target)) return check_choice(option, text);
  if (const auto* map = std::get_if<IntegerMap*>(&option.target))
    for (const auto& [name, number] : **map)
      RETURN_IF_ERROR(check_range(option, static_cast<double>(number), fmt::format("{}={}", name, number)));
  return {};
}

std::string option_text(const Option& option) {
  return std::visit(TextOf(), option.target);
}

std::string value_placeholder(const Option& option) {
  if (!option.value_name.empty()) return std::string(option.value_name);
  if (!option.choices.empty()) return fmt::format("{}", fmt::join(option.choices, "|"));
  constexpr std::array<std::string_view, std::variant_size_v<OptionTarget>> kByType = {
      "", "N", "X", "TEXT", "TEXT", "SIZE", "A,B,...", "NAME=N,..."};
  return std::string(kByType[option.target.index()]);
}

const Option* find_option(std::span<const Option> options, std::string_view name) {
  for (const Option& option : options)
    if (option.name == name) return &option;
  return nullptr;
}

std::vector<std::string_view> option_names(std::span<const Option> options) {
  std::vector<std::string_view> names;
  for (const Option& option : options) names.push_back(option.name);
  return names;
}

std::string number_text(double value) {
  return fmt::format("{}", value);
}

}  // namespace tenon
