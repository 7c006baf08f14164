// Values from JSON, and the tojson filter (jinja_filters.h) that writes them as Python's json.dumps does.
#pragma once

#include "base/json.h"
#include "text/jinja_value.h"

namespace tenon::jinja {

// Objects become dicts in the order of their keys. Throws Failure for text that is not UTF-8, for integers
// past 64 bits and for nesting past kMaxValueDepth.
Value from_json(Runtime& runtime, const Json& json);

}  // namespace tenon::jinja
