// What a command is: its words for the help page, its arguments bound to variables, and the function that
// runs it. A command is one file, cli/cmd_<name>.cc, with one public function `Command <name>_command()`, and
// one line in cli/command_list.inc. Parsing, help and error messages are the frame's (cli/program.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/option.h"

namespace tenon {

// An argument told by its place. A StringList takes all that remain, so it comes last.
struct Positional {
  std::string_view name;  // as in help: "PATH"
  std::variant<std::string*, StringList*> target;
  std::string_view help;
  bool required = true;  // a StringList that is required takes at least one
};

struct Command {
  std::string_view name;
  std::string_view summary;  // one line, imperative, no full stop: "Print the token ids of a text"
  std::string_view details;  // more for the help page; may be empty
  std::string_view example;  // command lines, one a line
  std::vector<Positional> positionals;
  std::vector<Option> options;
  // Runs after positionals are set and before options are: a recipe file fills the variables that options
  // then override. May be empty.
  std::function<Status()> prepare;
  std::vector<std::string_view> early_options = {};  // those that `prepare` needs: set before it
  // Does the work. Options are set and in range. Output goes to stdout; an error is printed by the frame.
  std::function<Status()> run;
};

// Every command, in the order of command_list.inc.
std::vector<Command> all_commands();

// Sets the command's variables from the words after its name. Errors: bad_argument. Does not look for --help.
Status parse_arguments(const Command& command, const std::vector<std::string>& words);

// True if --help or -h stands among the options.
bool asks_for_help(const std::vector<std::string>& words);

}  // namespace tenon
