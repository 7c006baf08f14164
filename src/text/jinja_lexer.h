// Template source to tokens. White space control (-, +, trim_blocks, lstrip_blocks), raw blocks and comments
// are settled here, so that the parser sees template data exactly as it will be printed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_runtime.h"

namespace tenon::jinja {

enum class TokenKind : uint8_t {
  data,
  block_begin,
  block_end,
  variable_begin,
  variable_end,
  name,
  string,
  integer,
  real,
  op,  // text holds the operator
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  Position at;
  std::string text;  // data, name, string (escapes resolved) or operator
  int64_t integer = 0;
  double real = 0;
};

// Line ends become \n and one line end at the end of the source is dropped, as jinja2 does.
std::string normalize_source(std::string_view source);

// The tokens of a normalized source; the last one is TokenKind::end. Throws Failure.
std::vector<Token> tokenize(std::string_view source);

// How jinja2 names a token in its messages.
std::string describe(const Token& token);

}  // namespace tenon::jinja
