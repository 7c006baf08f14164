// Recipes as YAML text, read and written.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <map>

#include "base/nearest_name.h"
#include "io/write_file.h"
#include "run/recipe.h"

namespace tenon {
namespace {

std::string at_line(std::string_view subject, const YAML::Node& node) {
  return fmt::format("{}:{}", subject, node.Mark().line + 1);
}

Error wrong_kind(const Option& option, std::string_view given) {
  return bad_argument(fmt::format("is {}, but takes {}", given,
                                  value_placeholder(option).empty() ? std::string("true or false")
                                                                    : value_placeholder(option)),
                      std::string(option.name));
}

Status set_from_sequence(const Option& option, const YAML::Node& value) {
  StringList* const* list = std::get_if<StringList*>(&option.target);
  if (list == nullptr) return wrong_kind(option, "a list");
  StringList elements;
  for (const YAML::Node& element : value) {
    if (!element.IsScalar())
      return bad_argument("has an element that is not a text", std::string(option.name));
    elements.push_back(element.Scalar());
  }
  **list = std::move(elements);
  return {};
}

Status set_from_map(const Option& option, const YAML::Node& value) {
  if (!std::holds_alternative<IntegerMap*>(option.target)) return wrong_kind(option, "a map");
  std::string text;
  for (const auto& entry : value) {
    if (!entry.first.IsScalar() || !entry.second.IsScalar())
      return bad_argument("has an entry that is not name: number", std::string(option.name));
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", entry.first.Scalar(), entry.second.Scalar());
  }
  return set_option(option, text);
}

Status set_from_node(const Option& option, const YAML::Node& value) {
  if (value.IsSequence()) return set_from_sequence(option, value);
  if (value.IsMap()) return set_from_map(option, value);
  if (!value.IsScalar()) return bad_argument("has no value", std::string(option.name));
  if (option.repeatable) {
    StringList& list = *std::get<StringList*>(option.target);
    list.clear();
    if (value.Scalar().empty()) return {};
  }
  return set_option(option, value.Scalar());
}

Status set_entry(std::span<const Option> options, const YAML::Node& key, const YAML::Node& value,
                 std::string_view subject) {
  const std::string where = at_line(subject, key);
  if (!key.IsScalar()) return bad_argument("a key is not a text", where);
  const Option* option = find_option(options, key.Scalar());
  if (option == nullptr) {
    std::string hint = did_you_mean(key.Scalar(), option_names(options));
    if (hint.empty()) hint = "'tenon train --help' lists the keys.";
    return bad_argument(fmt::format("unknown key '{}'", key.Scalar()), where, hint);
  }
  Status status = set_from_node(*option, value);
  if (!status.ok()) return std::move(status).error().within(where);
  return {};
}

// A text as a YAML scalar: plain where nothing in it could be read otherwise, else double-quoted.
std::string yaml_scalar(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  constexpr std::string_view kPlainLater = "0123456789./-+";
  constexpr std::array<std::string_view, 8> kReserved = {"true", "false", "null", "yes",
                                                         "no",   "on",    "off",  "y"};
  bool plain = !text.empty() && (kPlain.find(text[0]) != text.npos || text[0] == '/');
  std::string lower;
  for (const char c : text) {
    plain = plain && (kPlain.find(c) != kPlain.npos || kPlainLater.find(c) != kPlainLater.npos);
    lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  if (lower == "n") plain = false;
  for (const std::string_view reserved : kReserved) plain = plain && lower != reserved;
  if (plain) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      quoted += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      quoted += c;
  }
  return quoted + "\"";
}

std::string yaml_value(const Option& option) {
  if (option.repeatable && std::get<StringList*>(option.target)->size() <= 1)
    return yaml_scalar(option_text(option));
  if (const auto* list = std::get_if<StringList*>(&option.target)) {
    std::string text;
    for (const std::string& element : **list) text += (text.empty() ? "" : ", ") + yaml_scalar(element);
    return "[" + text + "]";
  }
  if (const auto* map = std::get_if<IntegerMap*>(&option.target)) {
    std::string text;
    for (const auto& [name, number] : **map)
      text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", yaml_scalar(name), number);
    return "{" + text + "}";
  }
  if (std::holds_alternative<std::string*>(option.target)) return yaml_scalar(option_text(option));
  return option_text(option);
}

Status parse_document(const YAML::Node& document, std::string_view subject, TrainRecipe& recipe) {
  if (document.IsNull()) return {};
  if (!document.IsMap())
    return bad_file("is not a list of 'key: value' lines", std::string(subject),
                    "Write one setting a line, such as rank: 16.");
  const std::vector<Option> options = recipe_options(recipe);
  std::map<std::string, int> first_lines;
  for (const auto& entry : document) {
    RETURN_IF_ERROR(set_entry(options, entry.first, entry.second, subject));
    const auto [first, added] = first_lines.emplace(entry.first.Scalar(), entry.first.Mark().line + 1);
    if (!added)
      return bad_argument(
          fmt::format("'{}' stands a second time, first in line {}", first->first, first->second),
          at_line(subject, entry.first));
  }
  return {};
}

}  // namespace

Status parse_recipe(std::string_view yaml, std::string_view subject, TrainRecipe& recipe) {
  TrainRecipe read = recipe;
  try {
    RETURN_IF_ERROR(parse_document(YAML::Load(std::string(yaml)), subject, read));
  } catch (const YAML::Exception& exception) {
    return bad_file(fmt::format("is not YAML: {}", exception.msg),
                    exception.mark.is_null() ? std::string(subject)
                                             : fmt::format("{}:{}", subject, exception.mark.line + 1),
                    "A recipe is one \"key: value\" a line, as in examples/helpdesk/recipe.yaml.");
  }
  recipe = std::move(read);
  return {};
}

Status read_recipe(const std::string& path, TrainRecipe& recipe) {
  constexpr int64_t kLargestRecipe = 1 << 20;
  ASSIGN_OR_RETURN(const std::string text, read_file(path, kLargestRecipe));
  return parse_recipe(text, path, recipe);
}

std::string recipe_yaml(const TrainRecipe& recipe) {
  TrainRecipe copy = recipe;
  std::string text;
  for (const Option& option : recipe_options(copy))
    text += fmt::format("{}: {}\n", option.name, yaml_value(option));
  return text;
}

}  // namespace tenon
