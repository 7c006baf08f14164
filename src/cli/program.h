// The frame around the commands: picks the command, prints help and version, prints an error once, and turns
// it into an exit code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

// `arguments` are the words after the program's name. Returns the exit code.
int run_program(const std::vector<std::string>& arguments);

// "0.1.0"
std::string_view version_text();

}  // namespace tenon
