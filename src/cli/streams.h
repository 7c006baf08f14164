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

// Calls `each` with the bytes of standard input as they arrive, cut after each of the bytes `after` (the last
// piece also without one), so that what a pipe writes is answered before it writes more. Stops at the first
// error. Errors also: io.
Status for_each_piece_of_input(std::string_view after, FunctionRef<Status(std::string_view pieces)> each);

// Calls `each` with every line (without its end, "\n" or "\r\n") and its number from 1; stops at the first
// error, whose subject gets "path:line" put before it. "-" is standard input, read as it arrives. A last line
// without an end counts, an empty one after the last end does not. Errors also: not_found, bad_argument, io.
Status for_each_line(const std::string& path,
                     FunctionRef<Status(std::string_view line, int64_t number)> each);

// Writes bytes as they are. A failure shows when the program flushes its output at the end.
void write_output(std::string_view bytes);

// Hands what was written to the reader now.
void flush_output();

}  // namespace tenon
