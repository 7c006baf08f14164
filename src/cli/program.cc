#include "cli/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "base/nearest_name.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/help.h"
#include "cli/terminal.h"

namespace tenon {
namespace {

int help_width() {
  constexpr int kWidestPage = 110;
  return std::min(terminal_of(stdout).width, kWidestPage);
}

Result<const Command*> find_command(const std::vector<Command>& commands, const std::string& name) {
  std::vector<std::string_view> names;
  for (const Command& command : commands) {
    if (command.name == name) return &command;
    names.push_back(command.name);
  }
  std::string hint = did_you_mean(name, names);
  if (hint.empty()) hint = "See 'tenon --help'.";
  return bad_argument(fmt::format("unknown command '{}'", name), {}, hint);
}

Status run_command(const std::vector<std::string>& arguments) {
  const std::vector<Command> commands = all_commands();
  const std::string& name = arguments[0];
  const bool help = name == "help" || name == "--help" || name == "-h";
  if (help && arguments.size() == 1) {
    fmt::print("{}", program_help(commands, help_width()));
    return {};
  }
  if (name == "--version") {
    fmt::print("tenon {}\n", version_text());
    return {};
  }
  if (name.starts_with("-") && !help)
    return bad_argument(fmt::format("unknown option '{}'", name), {},
                        "Options come after the command: see 'tenon --help'.");
  ASSIGN_OR_RETURN(const Command* command, find_command(commands, help ? arguments[1] : name));
  const std::vector<std::string> words(arguments.begin() + 1, arguments.end());
  if (help || asks_for_help(words)) {
    fmt::print("{}", command_help(*command, help_width()));
    return {};
  }
  RETURN_IF_ERROR(parse_arguments(*command, words));
  return command->run();
}

Status flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return io_error("cannot write the output", "standard output", "Is the disk full?");
  return {};
}

int report(const Error& error) {
  std::fflush(stdout);
  fmt::print(stderr, "tenon: {}\n", error.text());
  return exit_code(error.code);
}

}  // namespace

std::string_view version_text() {
  return TENON_VERSION;
}

int run_program(const std::vector<std::string>& arguments) {
  try {
    if (arguments.empty()) {
      fmt::print(stderr, "{}", program_help(all_commands(), help_width()));
      return kExitBadInput;
    }
    Status status = run_command(arguments);
    if (status.ok()) status = flush_output();
    return status.ok() ? kExitDone : report(status.error());
  } catch (const std::exception& exception) {
    fmt::print(stderr, "tenon: {}\n", exception.what());
    return kExitFailed;
  }
}

}  // namespace tenon
