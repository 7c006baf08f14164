// Facts about a thing, gathered once as ordered JSON and shown either as JSON or as an indented page for
// people.
#pragma once

#include <string>

#include "base/json.h"

namespace tenon {

// One fact a line, "name  value", the name with spaces for underscores; an object is a section, indented, and
// a list of objects one line an element. Whole numbers are grouped by thousands; a name that ends in _bytes
// is also shown in a unit; null is "none".
std::string facts_text(const Json& facts);

// Facts as JSON with a line end; bytes that are not UTF-8 become U+FFFD.
std::string facts_json(const Json& facts);

}  // namespace tenon
