// Template source to its tree, with every variable resolved to a slot (jinja_resolve.h).
#pragma once

#include <string_view>

#include "text/jinja_ast.h"

namespace tenon::jinja {

// `source` is normalized (normalize_source). Throws Failure: syntax errors as jinja2 words them, unsupported
// statements, nesting past the limits below.
Tree parse_template(std::string_view source);

inline constexpr int kMaxNesting = 100;     // of blocks, and of brackets
inline constexpr int kMaxExprHeight = 250;  // of an expression tree, so that its walk fits the stack

}  // namespace tenon::jinja
