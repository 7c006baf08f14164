// Arguments to parameters.
#include "text/jinja_arguments.h"

#include <fmt/format.h>

#include <utility>

#include "text/jinja_unicode.h"

namespace tenon::jinja {

std::vector<Value> bind(std::string_view function, CallArguments arguments,
                        std::initializer_list<std::string_view> names, size_t required) {
  std::vector<Value> out = std::move(arguments.positional);
  if (out.size() > names.size()) {
    fail_type(fmt::format("{}() takes at most {} arguments ({} given)", function, names.size(), out.size()));
  }
  out.resize(names.size());
  for (auto& [key, value] : arguments.keywords) {
    size_t i = 0;
    while (i < names.size() && *(names.begin() + i) != key) ++i;
    if (i == names.size()) {
      fail_type(fmt::format("{}() got an unexpected keyword argument {}", function, quote(key)));
    }
    if (!out[i].is_missing()) {
      fail_type(fmt::format("{}() got multiple values for argument {}", function, quote(key)));
    }
    out[i] = std::move(value);
  }
  for (size_t i = 0; i < required; ++i) {
    if (out[i].is_missing()) {
      fail_type(fmt::format("{}() missing required argument: {}", function, quote(*(names.begin() + i))));
    }
  }
  return out;
}

std::vector<Value> bind_positional(std::string_view function, CallArguments arguments, size_t required,
                                   size_t most) {
  if (!arguments.keywords.empty()) fail_type(fmt::format("{}() takes no keyword arguments", function));
  const size_t count = arguments.positional.size();
  if (count < required || count > most) {
    fail_type(fmt::format(
        "{}() takes {} arguments ({} given)", function,
        required == most ? fmt::format("exactly {}", most) : fmt::format("{} to {}", required, most), count));
  }
  arguments.positional.resize(most);
  return std::move(arguments.positional);
}

bool given(const Value& value) {
  return !value.is_missing() && !value.is(Kind::none);
}

int64_t index_argument(const Value& value) {
  if (!value.is_integral()) {
    fail_type(fmt::format("'{}' object cannot be interpreted as an integer", type_name(value)));
  }
  return value.as_integer();
}

int64_t index_or(const Value& value, int64_t otherwise) {
  return given(value) ? index_argument(value) : otherwise;
}

std::string_view string_argument(const Value& value, std::string_view what) {
  if (!value.is_string()) fail_type(fmt::format("{} must be str, not {}", what, type_name(value)));
  return value.text();
}

bool flag_argument(const Value& value, bool otherwise) {
  return value.is_missing() ? otherwise : truth(value);
}

}  // namespace tenon::jinja
