// Base64 (RFC 4648, the standard alphabet), as tiktoken files and character maps use it.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace tenon {

// Error: bad_file.
Result<std::string> decode_base64(std::string_view text);

}  // namespace tenon
