#include "cli/facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/json.h"
#include "base/option.h"
#include "cli/terminal.h"

namespace tenon {
namespace {

// All digits where they are few, six where they are not: --json has them all.
std::string short_number(double value) {
  std::string text = number_text(value);
  return text.size() <= 8 ? text : fmt::format("{:.6g}", value);
}

std::string scalar_text(std::string_view name, const Json& value) {
  if (value.is_null()) return "none";
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return short_number(value.get<double>());
  if (value.is_number_integer()) {
    const int64_t number = value.get<int64_t>();
    if (name.ends_with("_bytes") && number >= 1024)
      return fmt::format("{} ({} bytes)", format_bytes(number), grouped_digits(number));
    return grouped_digits(number);
  }
  return value.dump();
}

std::string label_of(std::string_view name) {
  if (name.ends_with("_bytes")) name.remove_suffix(6);
  std::string label(name);
  std::replace(label.begin(), label.end(), '_', ' ');
  return label;
}

std::string list_text(std::string_view name, const Json& list) {
  std::string text;
  for (const Json& element : list) text += (text.empty() ? "" : ", ") + scalar_text(name, element);
  return text.empty() ? "none" : text;
}

// The fields of each element, side by side under their names.
std::string objects_text(const Json& list, const std::string& indent) {
  std::vector<Table::Column> columns;
  for (const auto& [name, value] : list[0].items())
    columns.push_back({label_of(name), value.is_number() ? Table::Align::right : Table::Align::left});
  Table table(std::move(columns));
  for (const Json& element : list) {
    std::vector<std::string> cells;
    for (const auto& [name, value] : element.items())
      cells.push_back(value.is_array() ? value.dump() : scalar_text({}, value));
    table.add_row(std::move(cells));
  }
  std::string text = table.text();
  std::string indented;
  while (!text.empty()) {
    const size_t end = text.find('\n') + 1;
    indented += indent + text.substr(0, end);
    text.erase(0, end);
  }
  return indented;
}

void add_facts(const Json& facts, int depth, std::string& text) {
  const std::string indent(static_cast<size_t>(2 * depth), ' ');
  size_t column = 0;
  for (const auto& [name, value] : facts.items())
    if (!value.is_object() || value.empty()) column = std::max(column, label_of(name).size());
  for (const auto& [name, value] : facts.items()) {
    const std::string label = label_of(name);
    if (value.is_object() && !value.empty()) {
      text += fmt::format("{}{}\n", indent, label);
      add_facts(value, depth + 1, text);
    } else if (value.is_array() && !value.empty() && value[0].is_object()) {
      text += fmt::format("{}{}\n{}", indent, label, objects_text(value, indent + "  "));
    } else {
      const std::string shown = value.is_structured() ? list_text(name, value) : scalar_text(name, value);
      text += fmt::format("{}{:<{}}  {}\n", indent, label, column, shown);
    }
  }
}

}  // namespace

std::string facts_text(const Json& facts) {
  std::string text;
  add_facts(facts, 0, text);
  return text;
}

std::string facts_json(const Json& facts) {
  return facts.dump(2) + "\n";
}

}  // namespace tenon
