// Wording shared by the readers and writers of this room: system errors and names taken from files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tenon {

// "cannot DOING: No space left on device", with a hint that fits the errno. ENOENT is not_found, a folder
// where a file should be (or the reverse) is bad_argument, the rest io.
Error system_error(std::string_view doing, int error_number, std::string_view path);

// A name from a file, fit to print: control bytes and bytes of broken UTF-8 become '?', and long names are
// cut.
std::string printable(std::string_view name);

// A file's number of bytes as "123 bytes".
std::string bytes_text(int64_t bytes);

}  // namespace tenon
