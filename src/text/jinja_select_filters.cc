// map, select, reject, selectattr, rejectattr: what Python does element by element as it is read. Here all
// elements are done at once; an error among them waits until the reader comes to its place.
#include <fmt/format.h>

#include "text/jinja_arguments.h"
#include "text/jinja_filters.h"
#include "text/jinja_loop.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

// `each` adds to the output what one element gives. Nothing at all is done for a false input.
template <typename Each>
Value each_lazily(Runtime& runtime, const Value& input, Each each) {
  return lazily(runtime, [&](std::vector<Value>& out) {
    if (!truth(input)) return;
    ElementSource source(runtime, input);
    Value value;
    while (source.next(runtime, value)) each(value, out);
  });
}

std::string_view callable_name(const Value& value, std::string_view what) {
  if (value.is_string()) return value.text();
  if (value.is_undefined()) {
    try {
      fail_undefined(value);
    } catch (const Failure& failure) {
      fail("TemplateRuntimeError",
           fmt::format("No {} named Undefined. ({}; did you forget to quote the callable name?)", what,
                       failure.message));
    }
  }
  fail("TemplateRuntimeError", fmt::format("No {} named of type {}.", what, type_name(value)));
}

Value map(Runtime& runtime, const Value& input, CallArguments arguments) {
  if (!arguments.positional.empty()) {
    return each_lazily(runtime, input, [&](const Value& value, std::vector<Value>& out) {
      CallArguments rest = arguments;
      rest.positional.erase(rest.positional.begin());
      out.push_back(
          call_filter(runtime, callable_name(arguments.positional[0], "filter"), value, std::move(rest)));
    });
  }
  Value attribute;
  Value otherwise;
  std::string unexpected;
  for (auto& [key, value] : arguments.keywords) {
    if (key == "attribute") {
      attribute = value;
    } else if (key == "default") {
      otherwise = value;
    } else {
      unexpected = key;
    }
  }
  return each_lazily(runtime, input, [&](const Value& value, std::vector<Value>& out) {
    if (attribute.is_missing()) fail("FilterArgumentError", "map requires a filter argument");
    if (!unexpected.empty()) {
      fail("FilterArgumentError", fmt::format("Unexpected keyword argument {}", quote(unexpected)));
    }
    out.push_back(attribute_path(runtime, value, attribute, otherwise));
  });
}

Value choose(Runtime& runtime, const Value& input, CallArguments arguments, bool keep, bool by_attribute) {
  return each_lazily(runtime, input, [&](const Value& value, std::vector<Value>& out) {
    const size_t skip = by_attribute ? 1 : 0;
    if (arguments.positional.size() < skip)
      fail("FilterArgumentError", "Missing parameter for attribute name");
    const Value looked = by_attribute ? attribute_path(runtime, value, arguments.positional[0]) : value;
    bool passes = false;
    if (arguments.positional.size() > skip) {
      CallArguments rest = arguments;
      rest.positional.erase(rest.positional.begin(),
                            rest.positional.begin() + static_cast<int64_t>(skip) + 1);
      passes = call_test(runtime, callable_name(arguments.positional[skip], "test"), looked, std::move(rest));
    } else {
      passes = truth(looked);
    }
    if (passes == keep) out.push_back(value);
  });
}

Value select(Runtime& runtime, const Value& input, CallArguments arguments) {
  return choose(runtime, input, std::move(arguments), true, false);
}
Value reject(Runtime& runtime, const Value& input, CallArguments arguments) {
  return choose(runtime, input, std::move(arguments), false, false);
}
Value selectattr(Runtime& runtime, const Value& input, CallArguments arguments) {
  return choose(runtime, input, std::move(arguments), true, true);
}
Value rejectattr(Runtime& runtime, const Value& input, CallArguments arguments) {
  return choose(runtime, input, std::move(arguments), false, true);
}

constexpr FilterEntry kFilters[] = {
    {"map", map},       {"reject", reject},         {"rejectattr", rejectattr},
    {"select", select}, {"selectattr", selectattr},
};

}  // namespace

FilterTable select_filters() {
  return {kFilters, std::size(kFilters)};
}

}  // namespace tenon::jinja
