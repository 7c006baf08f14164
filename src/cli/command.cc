#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest_name.h"

namespace tenon {

#define TENON_COMMAND(name) Command name##_command();
#include "cli/command_list.inc"
#undef TENON_COMMAND

namespace {

// An option as it was written, not yet set.
struct Given {
  const Option* option;
  std::string_view text;
};

std::string see_help(const Command& command) {
  return fmt::format("See 'tenon {} --help'.", command.name);
}

Error unknown_option(const Command& command, std::string_view name) {
  std::vector<std::string> spelled = {"--help"};
  for (const std::string_view known : option_names(command.options))
    spelled.push_back(fmt::format("--{}", known));
  const std::vector<std::string_view> candidates(spelled.begin(), spelled.end());
  std::string hint = did_you_mean(name, candidates);
  return bad_argument(fmt::format("unknown option '{}'", name), std::string(command.name),
                      hint.empty() ? see_help(command) : hint);
}

bool looks_like_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

// Splits the words into options with their values and the rest.
Status sort_words(const Command& command, const std::vector<std::string>& words, std::vector<Given>& options,
                  std::vector<std::string_view>& rest) {
  bool only_rest = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (only_rest || !looks_like_option(word)) {
      rest.push_back(word);
      continue;
    }
    if (word == "--") {
      only_rest = true;
      continue;
    }
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const Option* option = name.starts_with("--") ? find_option(command.options, name.substr(2)) : nullptr;
    if (option == nullptr) return unknown_option(command, name);
    if (equals != std::string_view::npos) {
      options.push_back({option, word.substr(equals + 1)});
    } else if (std::holds_alternative<bool*>(option->target)) {
      options.push_back({option, "true"});
    } else if (i + 1 < words.size() && !std::string_view(words[i + 1]).starts_with("--")) {
      options.push_back({option, words[++i]});
    } else {
      return bad_argument(fmt::format("needs a value: {} {}", name, value_placeholder(*option)),
                          std::string(name),
                          fmt::format("Write {}=VALUE for a value that begins with --.", name));
    }
  }
  return {};
}

Status set_positionals(const Command& command, std::span<const std::string_view> words) {
  size_t next = 0;
  for (const Positional& positional : command.positionals) {
    if (positional.required && next >= words.size())
      return bad_argument(fmt::format("{} is missing", positional.name), std::string(command.name),
                          see_help(command));
    if (auto* const* list = std::get_if<StringList*>(&positional.target)) {
      for (; next < words.size(); ++next) (*list)->emplace_back(words[next]);
    } else if (next < words.size()) {
      *std::get<std::string*>(positional.target) = words[next++];
    }
  }
  if (next < words.size())
    return bad_argument(fmt::format("unexpected argument '{}'", words[next]), std::string(command.name),
                        see_help(command));
  return {};
}

Status set_option_of_line(const Given& given) {
  Status status = set_option(*given.option, given.text);
  if (status.ok()) return {};
  Error error = std::move(status).error();
  error.subject.insert(0, "--");
  return error;
}

Status set_early_options(const Command& command, std::span<const Given> given) {
  for (const Given& each : given) {
    const auto& early = command.early_options;
    if (std::find(early.begin(), early.end(), each.option->name) != early.end())
      RETURN_IF_ERROR(set_option_of_line(each));
  }
  return {};
}

Status set_options(const Command& command, std::span<const Given> given) {
  // What the line says replaces what a recipe says.
  for (const Given& each : given)
    if (each.option->repeatable) std::get<StringList*>(each.option->target)->clear();
  for (const Given& each : given) RETURN_IF_ERROR(set_option_of_line(each));
  for (const Option& option : command.options) {
    const bool set =
        std::any_of(given.begin(), given.end(), [&](const Given& g) { return g.option == &option; });
    if (option.required && !set)
      return bad_argument(fmt::format("--{} is missing", option.name), std::string(command.name),
                          see_help(command));
  }
  return {};
}

}  // namespace

std::vector<Command> all_commands() {
  std::vector<Command> commands;
#define TENON_COMMAND(name) commands.push_back(name##_command());
#include "cli/command_list.inc"
#undef TENON_COMMAND
  return commands;
}

Status parse_arguments(const Command& command, const std::vector<std::string>& words) {
  std::vector<Given> options;
  std::vector<std::string_view> rest;
  RETURN_IF_ERROR(sort_words(command, words, options, rest));
  RETURN_IF_ERROR(set_positionals(command, rest));
  if (command.prepare) {
    RETURN_IF_ERROR(set_early_options(command, options));
    RETURN_IF_ERROR(command.prepare());
  }
  return set_options(command, options);
}

bool asks_for_help(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

}  // namespace tenon
