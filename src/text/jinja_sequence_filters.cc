// Filters over sequences and dicts: order, grouping, ends, length.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_arguments.h"
#include "text/jinja_filters.h"
#include "text/jinja_loop.h"
#include "text/jinja_members.h"
#include "text/jinja_methods.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

struct Keyed {
  Value key;
  Value value;
};

// Python's sorted(): stable, and stable in reverse too.
void sort_keyed(Runtime& runtime, std::vector<Keyed>& items, bool reverse) {
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    const int order = reverse ? compare(runtime, b.key, a.key, "<") : compare(runtime, a.key, b.key, "<");
    return order < 0;
  });
}

bool reverse_argument(const Value& value) {
  return !value.is_missing() && index_argument(value) != 0;
}

Value case_key(Runtime& runtime, const Value& value, bool case_sensitive) {
  return case_sensitive ? value : ignore_case(runtime, value);
}

Value defaulted(Runtime&, const Value& input, CallArguments arguments) {
  const auto args = bind("default", std::move(arguments), {"default_value", "boolean"}, 0);
  const bool use = input.is_undefined() || (flag_argument(args[1], false) && !truth(input));
  if (!use) return input;
  static const Value kEmpty = Value::object(Kind::string, std::make_shared<Text>());
  return args[0].is_missing() ? kEmpty : args[0];
}

Value length_filter(Runtime& runtime, const Value& input, CallArguments arguments) {
  bind_positional("len", std::move(arguments), 0, 0);
  return Value::integer(length(runtime, input));
}

Value list(Runtime& runtime, const Value& input, CallArguments arguments) {
  bind("list", std::move(arguments), {}, 0);
  return make_list(runtime, elements(runtime, input));
}

Value first(Runtime& runtime, const Value& input, CallArguments arguments) {
  bind("first", std::move(arguments), {}, 0);
  ElementSource source(runtime, input);
  Value out;
  return source.next(runtime, out) ? out : make_undefined("No first item, sequence was empty.");
}

Value last(Runtime& runtime, const Value& input, CallArguments arguments) {
  bind("last", std::move(arguments), {}, 0);
  if (!has_length(input) || input.is(Kind::loop))
    fail_type(fmt::format("'{}' object is not reversible", type_name(input)));
  const int64_t size = length(runtime, input);
  if (size == 0) return make_undefined("No last item, sequence was empty.");
  if (input.is_string() || input.is_sequence()) return get_item(runtime, input, Value::integer(size - 1));
  return elements(runtime, input).back();
}

Value reverse(Runtime& runtime, const Value& input, CallArguments arguments) {
  bind("reverse", std::move(arguments), {}, 0);
  if (input.is_string()) {
    runtime.charge_scan(input.text());
    auto code_points = to_code_points(input.text());
    std::reverse(code_points.begin(), code_points.end());
    return make_string(runtime, from_code_points(code_points), input.as<Text>().markup);
  }
  if (!is_iterable(input)) fail("FilterArgumentError", "argument must be iterable");
  auto values = elements(runtime, input);
  std::reverse(values.begin(), values.end());
  if (input.is(Kind::iterator) || input.is_undefined()) return make_list(runtime, std::move(values));
  return make_iterator(runtime, std::move(values),
                       input.is(Kind::list) ? "list_reverseiterator" : "reversed");
}

std::vector<Value> split_paths(Runtime& runtime, const Value& attribute) {
  if (!attribute.is_string()) return {attribute};
  std::vector<Value> out;
  std::string_view rest = attribute.text();
  while (true) {
    const size_t comma = rest.find(',');
    out.push_back(make_string(runtime, std::string(rest.substr(0, comma))));
    if (comma == std::string_view::npos) return out;
    rest.remove_prefix(comma + 1);
  }
}

Value sort(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("sort", std::move(arguments), {"reverse", "case_sensitive", "attribute"}, 0);
  const bool case_sensitive = flag_argument(args[1], false);
  const auto paths = split_paths(runtime, args[2]);
  std::vector<Keyed> items;
  for (const Value& value : elements(runtime, input)) {
    std::vector<Value> keys;
    for (const Value& path : paths) {
      keys.push_back(case_key(runtime, attribute_path(runtime, value, path), case_sensitive));
    }
    items.push_back({make_list(runtime, std::move(keys)), value});
  }
  sort_keyed(runtime, items, reverse_argument(args[0]));
  std::vector<Value> out;
  for (Keyed& item : items) out.push_back(std::move(item.value));
  return make_list(runtime, std::move(out));
}

Value dictsort(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("dictsort", std::move(arguments), {"case_sensitive", "by", "reverse"}, 0);
  const std::string by = args[1].is_missing() ? "key" : to_text(runtime, args[1]);
  if (by != "key" && by != "value") {
    fail("FilterArgumentError", "You can only sort by either \"key\" or \"value\"");
  }
  if (input.is_undefined()) fail_undefined(input);
  if (!input.is(Kind::dict))
    fail("AttributeError", fmt::format("'{}' object has no attribute 'items'", type_name(input)));
  std::vector<Keyed> items;
  for (const auto& [key, value] : input.as<Dict>().entries) {
    items.push_back({case_key(runtime, by == "key" ? key : value, flag_argument(args[0], false)),
                     make_tuple(runtime, {key, value})});
  }
  sort_keyed(runtime, items, reverse_argument(args[2]));
  std::vector<Value> out;
  for (Keyed& item : items) out.push_back(std::move(item.value));
  return make_list(runtime, std::move(out));
}

Value extreme(Runtime& runtime, const Value& input, CallArguments arguments, bool greatest) {
  const auto args = bind(greatest ? "max" : "min", std::move(arguments), {"case_sensitive", "attribute"}, 0);
  Value best;
  Value best_key;
  for (const Value& value : elements(runtime, input)) {
    Value key = case_key(runtime, attribute_path(runtime, value, args[1]), flag_argument(args[0], false));
    if (!best.is_missing()) {
      const int order =
          greatest ? compare(runtime, best_key, key, ">") : compare(runtime, key, best_key, "<");
      if (order == 2 || order >= 0) continue;
    }
    best = value;
    best_key = std::move(key);
  }
  return best.is_missing() ? make_undefined("No aggregated item, sequence was empty.") : best;
}

Value min(Runtime& runtime, const Value& input, CallArguments arguments) {
  return extreme(runtime, input, std::move(arguments), false);
}
Value max(Runtime& runtime, const Value& input, CallArguments arguments) {
  return extreme(runtime, input, std::move(arguments), true);
}

Value unique(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("unique", std::move(arguments), {"case_sensitive", "attribute"}, 0);
  return lazily(runtime, [&](std::vector<Value>& out) {
    DictBuilder seen(runtime);
    for (const Value& value : elements(runtime, input)) {
      const Value key =
          case_key(runtime, attribute_path(runtime, value, args[1]), flag_argument(args[0], false));
      if (seen.set(key, Value::none())) out.push_back(value);
    }
  });
}

Value groupby(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("groupby", std::move(arguments), {"attribute", "default", "case_sensitive"}, 1);
  const bool case_sensitive = flag_argument(args[2], false);
  std::vector<Keyed> items;
  for (const Value& value : elements(runtime, input)) {
    items.push_back(
        {case_key(runtime, attribute_path(runtime, value, args[0], args[1]), case_sensitive), value});
  }
  sort_keyed(runtime, items, false);
  std::vector<Value> out;
  for (size_t i = 0; i < items.size();) {
    const Value key = items[i].key;
    const Value shown = case_sensitive ? key : attribute_path(runtime, items[i].value, args[0], args[1]);
    std::vector<Value> group;
    while (i < items.size() && equal(runtime, items[i].key, key)) group.push_back(items[i++].value);
    if (group.empty()) group.push_back(items[i++].value);  // a NaN, which does not equal itself
    out.push_back(make_tuple(runtime, {shown, make_list(runtime, std::move(group))}, true));
  }
  return make_list(runtime, std::move(out));
}

Value batch(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("batch", std::move(arguments), {"linecount", "fill_with"}, 1);
  return lazily(runtime, [&](std::vector<Value>& out) {
    std::vector<Value> row;
    for (const Value& value : elements(runtime, input)) {
      if (equal(runtime, args[0], Value::integer(static_cast<int64_t>(row.size())))) {
        out.push_back(make_list(runtime, std::exchange(row, {})));
      }
      row.push_back(value);
    }
    if (row.empty()) return;
    if (given(args[1]) && args[0].is_undefined()) fail_undefined(args[0]);
    const int64_t missing = given(args[1]) ? index_argument(args[0]) - static_cast<int64_t>(row.size()) : 0;
    if (missing > 0) {
      runtime.charge(missing);
      row.insert(row.end(), static_cast<size_t>(missing), args[1]);
    }
    out.push_back(make_list(runtime, std::move(row)));
  });
}

Value slice(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("slice", std::move(arguments), {"slices", "fill_with"}, 1);
  return lazily(runtime, [&](std::vector<Value>& out) {
    const auto values = elements(runtime, input);
    const int64_t slices = index_argument(args[0]);
    if (slices == 0) fail("ZeroDivisionError", "integer division or modulo by zero");
    const auto size = static_cast<int64_t>(values.size());
    const int64_t each = slices > 0 ? size / slices : 0;
    const int64_t extra = slices > 0 ? size % slices : 0;
    int64_t begin = 0;
    for (int64_t i = 0; i < slices; ++i) {
      const int64_t end = begin + each + (i < extra ? 1 : 0);
      std::vector<Value> part(values.begin() + begin, values.begin() + end);
      if (given(args[1]) && i >= extra) part.push_back(args[1]);
      out.push_back(make_list(runtime, std::move(part)));
      begin = end;
    }
  });
}

Value items(Runtime& runtime, const Value& input, CallArguments arguments) {
  bind("items", std::move(arguments), {}, 0);
  return lazily(runtime, [&](std::vector<Value>& out) {
    if (input.is_undefined()) return;
    if (!input.is(Kind::dict)) fail_type("Can only get item pairs from a mapping.");
    out = elements(runtime, make_view(runtime, View::What::items, input));
  });
}

Value attr(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("attr", std::move(arguments), {"name"}, 1);
  const std::string name(string_argument(args[0], "attribute name"));
  if (input.is_undefined()) fail_undefined(input);
  const Value value = own_attribute(runtime, input, name);
  if (value.is_missing() && !name.starts_with("__")) return undefined_member(input, args[0]);
  return get_attribute(runtime, input, args[0]);
}

constexpr FilterEntry kFilters[] = {
    {"attr", attr},         {"batch", batch},       {"count", length_filter},  {"d", defaulted},
    {"default", defaulted}, {"dictsort", dictsort}, {"first", first},          {"groupby", groupby},
    {"items", items},       {"last", last},         {"length", length_filter}, {"list", list},
    {"max", max},           {"min", min},           {"reverse", reverse},      {"slice", slice},
    {"sort", sort},         {"unique", unique},
};

}  // namespace

FilterTable sequence_filters() {
  return {kFilters, std::size(kFilters)};
}

}  // namespace tenon::jinja
