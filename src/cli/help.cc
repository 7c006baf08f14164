#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/program.h"
#include "cli/terminal.h"

namespace tenon {
namespace {

// Two columns: what is explained, and the explanation, wrapped and indented under itself.
struct Entry {
  std::string term;
  std::string explanation;
};

std::string entries_text(std::span<const Entry> entries, int width) {
  constexpr size_t kWidestTerm = 26;  // a longer term has its explanation on the next line
  size_t column = 0;
  for (const Entry& entry : entries)
    if (entry.term.size() <= kWidestTerm) column = std::max(column, entry.term.size());
  column += 4;
  std::string text;
  for (const Entry& entry : entries) {
    text += "  " + entry.term;
    const bool own_line = entry.term.size() + 4 > column;
    if (own_line) text += '\n';
    const size_t used = own_line ? 0 : entry.term.size() + 2;
    bool first = true;
    for (const std::string& line : wrapped(entry.explanation, width - static_cast<int>(column))) {
      text += std::string(first ? column - used : column, ' ') + line + "\n";
      first = false;
    }
  }
  return text;
}

std::string explanation_of(const Option& option) {
  std::string text(option.help);
  if (option.required) return text + " (required)";
  const std::string value = option_text(option);
  if (value.empty() || std::holds_alternative<bool*>(option.target)) return text;
  return text + fmt::format(" (default: {})", value);
}

std::string usage_line(const Command& command) {
  std::string usage = fmt::format("usage: tenon {}", command.name);
  for (const Positional& positional : command.positionals) {
    const bool many = std::holds_alternative<StringList*>(positional.target);
    const std::string name = std::string(positional.name) + (many ? " ..." : "");
    usage += positional.required ? " " + name : " [" + name + "]";
  }
  for (const Option& option : command.options)
    if (option.required) usage += fmt::format(" --{} {}", option.name, value_placeholder(option));
  return usage + " [options]\n";
}

std::string options_text(const Command& command, int width) {
  std::string text;
  std::string_view group = "options";
  std::vector<Entry> entries;
  const auto flush = [&] {
    if (!entries.empty()) text += fmt::format("\n{}:\n{}", group, entries_text(entries, width));
    entries.clear();
  };
  for (const Option& option : command.options) {
    const std::string_view own = option.group.empty() ? "options" : option.group;
    if (own != group) flush();
    group = own;
    const std::string value = value_placeholder(option);
    entries.push_back(
        {fmt::format("--{}{}{}", option.name, value.empty() ? "" : " ", value), explanation_of(option)});
  }
  flush();
  group = "other";
  entries.push_back({"--help", "Print this page"});
  flush();
  return text;
}

}  // namespace

std::string program_help(std::span<const Command> commands, int width) {
  std::string text = fmt::format(
      "tenon {}: fine-tunes and serves open-weight language models\n\nusage: tenon COMMAND "
      "[options]\n\ncommands:\n",
      version_text());
  std::vector<Entry> entries;
  for (const Command& command : commands)
    entries.push_back({std::string(command.name), std::string(command.summary)});
  return text + entries_text(entries, width) +
         "\n'tenon COMMAND --help' explains a command. 'tenon --version' prints the version.\n"
         "Exit codes: 0 done, 1 failed while running, 2 bad input, 3 does not fit in memory.\n";
}

std::string command_help(const Command& command, int width) {
  std::string text = fmt::format("{}.\n\n{}", command.summary, usage_line(command));
  if (!command.details.empty()) {
    text += '\n';
    for (const std::string& line : wrapped(command.details, width)) text += line + "\n";
  }
  std::vector<Entry> entries;
  for (const Positional& positional : command.positionals)
    entries.push_back({std::string(positional.name), std::string(positional.help)});
  if (!entries.empty()) text += "\n" + entries_text(entries, width);
  text += options_text(command, width) + "\nexample:\n";
  std::string_view rest = command.example;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    text += fmt::format("  {}\n", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text;
}

}  // namespace tenon
