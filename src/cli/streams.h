// Reading input line by line and writing results to standard output as they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/function_ref.h"

namespace tenon {

// The whole of standard input. Error: io.
Result<std::string> read_standard_input();

// Calls `each` with every line (without its end, "\n" or "\r\n") and its number from 1; stops at the first
// error, whose subject gets "path:line" put before it. "-" is standard input. A last line without an end
// counts, an empty one after the last end does not. Errors also: not_found, bad_argument, io.
Status for_each_line(const std::string& path,
                     FunctionRef<Status(std::string_view line, int64_t number)> each);

// Writes bytes as they are. A failure shows when the program flushes its output at the end.
void write_output(std::string_view bytes);

}  // namespace tenon
