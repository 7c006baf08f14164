// Help pages, as text of at most `width` columns.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace tenon {

std::string program_help(std::span<const Command> commands, int width);
std::string command_help(const Command& command, int width);

}  // namespace tenon
