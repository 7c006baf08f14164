// x.name, x[key], x[a:b] and x(...), as jinja2's sandbox does them: an attribute comes before a key for
// x.name and after it for x[key]; private names and what would change a list or dict give an unsafe
// undefined.
#pragma once

#include <string_view>

#include "text/jinja_value.h"

namespace tenon::jinja {

Value get_attribute(Runtime& runtime, const Value& owner, const Value& name);  // name is a string
Value get_item(Runtime& runtime, const Value& owner, const Value& key);
Value get_slice(Runtime& runtime, const Value& owner, const Value& start, const Value& stop,
                const Value& step);
Value call_value(Runtime& runtime, const Value& callee, CallArguments arguments);

// What getattr(x, name) finds in Python, a method bound to x for instance; missing when there is none. Only
// the attribute itself: neither keys nor the sandbox are looked at.
Value own_attribute(Runtime& runtime, const Value& owner, std::string_view name);
// True for attributes that the sandbox withholds: private, or changing a list or dict.
bool is_unsafe_attribute(const Value& owner, std::string_view name);

// The index of Python's x[i] for a sequence of `size` elements, or -1.
int64_t element_index(int64_t index, int64_t size);

}  // namespace tenon::jinja
