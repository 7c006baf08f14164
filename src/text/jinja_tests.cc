// The tests of jinja2: `x is name`.
#include <fmt/format.h>

#include <array>

#include "text/jinja_arguments.h"
#include "text/jinja_filters.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

using Test = bool (*)(Runtime&, const Value& value, const Value& argument);

struct TestEntry {
  std::string_view name;
  size_t arguments;
  Test test;
};

template <Kind kind>
bool is_kind(Runtime&, const Value& value, const Value&) {
  return value.is(kind);
}

bool is_remainder(Runtime& runtime, const Value& value, const Value& by, int64_t rest) {
  return equal(runtime, binary_operation(runtime, "%", value, by), Value::integer(rest));
}

bool odd(Runtime& runtime, const Value& value, const Value&) {
  return is_remainder(runtime, value, Value::integer(2), 1);
}
bool even(Runtime& runtime, const Value& value, const Value&) {
  return is_remainder(runtime, value, Value::integer(2), 0);
}
bool divisibleby(Runtime& runtime, const Value& value, const Value& by) {
  return is_remainder(runtime, value, by, 0);
}

bool defined(Runtime&, const Value& value, const Value&) {
  return !value.is_undefined();
}
bool number(Runtime&, const Value& value, const Value&) {
  return value.is_number();
}
bool is_true(Runtime&, const Value& value, const Value&) {
  return value.is(Kind::boolean) && value.as_integer() != 0;
}
bool is_false(Runtime&, const Value& value, const Value&) {
  return value.is(Kind::boolean) && value.as_integer() == 0;
}

bool sequence(Runtime&, const Value& value, const Value&) {
  return has_length(value) && !value.is(Kind::view) && !value.is(Kind::loop);
}
bool iterable(Runtime&, const Value& value, const Value&) {
  return is_iterable(value);
}

bool callable(Runtime&, const Value& value, const Value&) {
  return value.is(Kind::function) || value.is(Kind::undefined) || value.is(Kind::loop) ||
         value.is(Kind::joiner);
}

bool sameas(Runtime&, const Value& value, const Value& other) {
  return same_object(value, other);
}
bool escaped(Runtime&, const Value& value, const Value&) {
  return value.is_string() && value.as<Text>().markup;
}
bool in(Runtime& runtime, const Value& value, const Value& container) {
  return contains(runtime, container, value);
}

bool case_test(Runtime& runtime, const Value& value, const char* method) {
  const Value text = to_string(runtime, value);
  return truth(string_method(text, method).as<Function>().call(runtime, text, CallArguments{}));
}
bool lower(Runtime& runtime, const Value& value, const Value&) {
  return case_test(runtime, value, "islower");
}
bool upper(Runtime& runtime, const Value& value, const Value&) {
  return case_test(runtime, value, "isupper");
}

// Both look the value up in a dict, which refuses what has no hash.
bool filter(Runtime& runtime, const Value& value, const Value&) {
  hash_of(runtime, value);
  return value.is_string() && filter_exists(value.text());
}
bool test(Runtime& runtime, const Value& value, const Value&) {
  hash_of(runtime, value);
  return value.is_string() && test_exists(value.text());
}

bool eq(Runtime& runtime, const Value& a, const Value& b) {
  return compare_operation(runtime, "==", a, b);
}
bool ne(Runtime& runtime, const Value& a, const Value& b) {
  return compare_operation(runtime, "!=", a, b);
}
bool gt(Runtime& runtime, const Value& a, const Value& b) {
  return compare_operation(runtime, ">", a, b);
}
bool ge(Runtime& runtime, const Value& a, const Value& b) {
  return compare_operation(runtime, ">=", a, b);
}
bool lt(Runtime& runtime, const Value& a, const Value& b) {
  return compare_operation(runtime, "<", a, b);
}
bool le(Runtime& runtime, const Value& a, const Value& b) {
  return compare_operation(runtime, "<=", a, b);
}

constexpr TestEntry kTests[] = {
    {"odd", 0, odd},
    {"even", 0, even},
    {"divisibleby", 1, divisibleby},
    {"defined", 0, defined},
    {"undefined", 0, is_kind<Kind::undefined>},
    {"filter", 0, filter},
    {"test", 0, test},
    {"none", 0, is_kind<Kind::none>},
    {"boolean", 0, is_kind<Kind::boolean>},
    {"false", 0, is_false},
    {"true", 0, is_true},
    {"integer", 0, is_kind<Kind::integer>},
    {"float", 0, is_kind<Kind::real>},
    {"lower", 0, lower},
    {"upper", 0, upper},
    {"string", 0, is_kind<Kind::string>},
    {"mapping", 0, is_kind<Kind::dict>},
    {"number", 0, number},
    {"sequence", 0, sequence},
    {"iterable", 0, iterable},
    {"callable", 0, callable},
    {"sameas", 1, sameas},
    {"escaped", 0, escaped},
    {"in", 1, in},
    {"==", 1, eq},
    {"eq", 1, eq},
    {"equalto", 1, eq},
    {"!=", 1, ne},
    {"ne", 1, ne},
    {">", 1, gt},
    {"gt", 1, gt},
    {"greaterthan", 1, gt},
    {"ge", 1, ge},
    {">=", 1, ge},
    {"<", 1, lt},
    {"lt", 1, lt},
    {"lessthan", 1, lt},
    {"<=", 1, le},
    {"le", 1, le},
};

const TestEntry* lookup(std::string_view name) {
  for (const auto& entry : kTests) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace

bool test_exists(std::string_view name) {
  return lookup(name) != nullptr;
}

bool call_test(Runtime& runtime, std::string_view name, const Value& value, CallArguments arguments) {
  const TestEntry* entry = lookup(name);
  if (entry == nullptr) fail("TemplateRuntimeError", fmt::format("No test named {}.", quote(name)));
  // The one parameter may be named: num of divisibleby, other of sameas, seq of in.
  if (arguments.positional.empty() && arguments.keywords.size() == 1 && entry->arguments == 1) {
    const std::string& key = arguments.keywords[0].first;
    if ((name == "divisibleby" && key == "num") || (name == "sameas" && key == "other") ||
        (name == "in" && key == "seq")) {
      return entry->test(runtime, value, arguments.keywords[0].second);
    }
  }
  const auto args = bind_positional(name, std::move(arguments), entry->arguments, entry->arguments);
  return entry->test(runtime, value, args.empty() ? Value::none() : args[0]);
}

}  // namespace tenon::jinja
