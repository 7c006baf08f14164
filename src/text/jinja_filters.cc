// Filters by name, and what several of them share.
#include "text/jinja_filters.h"

#include <fmt/format.h>

#include "text/jinja_members.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

Filter lookup(std::string_view name) {
  if (name == "tojson") return tojson;
  for (const FilterTable& table : {text_filters(), number_filters(), sequence_filters(), select_filters()}) {
    for (size_t i = 0; i < table.size; ++i) {
      if (table.entries[i].name == name) return table.entries[i].call;
    }
  }
  return nullptr;
}

bool is_refused(std::string_view name) {
  return name == "random" || name == "urlize" || name == "pprint" || name == "wordwrap";
}

}  // namespace

bool filter_exists(std::string_view name) {
  return lookup(name) != nullptr || is_refused(name);
}

Value call_filter(Runtime& runtime, std::string_view name, const Value& input, CallArguments arguments) {
  if (const Filter filter = lookup(name)) return filter(runtime, input, std::move(arguments));
  if (is_refused(name)) fail_unsupported(fmt::format("the filter '{}' is not supported", name));
  fail("TemplateRuntimeError", fmt::format("No filter named {}.", quote(name)));
}

Value lazily(Runtime& runtime, const std::function<void(std::vector<Value>& out)>& fill) {
  std::vector<Value> out;
  std::shared_ptr<Failure> failure;
  try {
    fill(out);
  } catch (Failure& thrown) {
    if (thrown.code != ErrorCode::bad_argument) throw;
    failure = std::make_shared<Failure>(std::move(thrown));
  }
  return make_iterator(runtime, std::move(out), "generator", std::move(failure));
}

Value attribute_path(Runtime& runtime, const Value& value, const Value& path, const Value& otherwise) {
  if (path.is_missing() || path.is(Kind::none)) return value;
  const bool replaces = !otherwise.is_missing() && !otherwise.is(Kind::none);
  if (!path.is_string()) {
    Value out = get_item(runtime, value, path);
    return replaces && out.is_undefined() ? otherwise : out;
  }
  Value out = value;
  std::string_view rest = path.text();
  while (true) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool number =
        !part.empty() && part.size() < 18 && part.find_first_not_of("0123456789") == part.npos;
    out = get_item(
        runtime, out,
        number ? Value::integer(std::stoll(std::string(part))) : make_string(runtime, std::string(part)));
    if (replaces && out.is_undefined()) out = otherwise;
    if (dot == std::string_view::npos) return out;
    rest.remove_prefix(dot + 1);
  }
}

Value ignore_case(Runtime& runtime, const Value& value) {
  return value.is_string() ? make_string(runtime, to_lower(value.text()), value.as<Text>().markup) : value;
}

}  // namespace tenon::jinja
