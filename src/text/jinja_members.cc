// Attributes, items, slices and calls.
#include "text/jinja_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja_globals.h"
#include "text/jinja_loop.h"
#include "text/jinja_methods.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

template <size_t N>
bool one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Attributes that every Python object has, or most; all are private to the sandbox.
bool is_dunder(std::string_view name) {
  static constexpr std::array<std::string_view, 27> kNames = {
      "__class__",        "__delattr__",  "__dir__",  "__doc__",    "__eq__",           "__format__",
      "__ge__",           "__gt__",       "__hash__", "__init__",   "__le__",           "__lt__",
      "__module__",       "__ne__",       "__new__",  "__reduce__", "__reduce_ex__",    "__repr__",
      "__setattr__",      "__sizeof__",   "__str__",  "__dict__",   "__getattribute__", "__init_subclass__",
      "__subclasshook__", "__getstate__", "__call__"};
  static constexpr std::array<std::string_view, 11> kContainerNames = {
      "__len__",  "__getitem__", "__contains__", "__iter__",    "__add__",     "__mul__",
      "__rmul__", "__mod__",     "__setitem__",  "__delitem__", "__reversed__"};
  return one_of(kNames, name) || one_of(kContainerNames, name);
}

bool has_private(const Value& owner, std::string_view name) {
  if (name == "mro") return type_name(owner) == "type";
  static constexpr std::array<std::string_view, 6> kFunctionNames = {
      "__globals__", "__name__", "__qualname__", "__code__", "__closure__", "__self__"};
  if (owner.is(Kind::function) && one_of(kFunctionNames, name)) return true;
  if (!is_dunder(name)) return false;
  if (name == "__module__" || name == "__dict__" || name == "__call__") {
    return owner.is(Kind::function) || owner.is(Kind::loop) || owner.is(Kind::cycler) ||
           owner.is(Kind::joiner);
  }
  return true;
}

Value space_attribute(const Value& owner, std::string_view name) {
  for (const auto& [key, value] : owner.as<Space>().attributes) {
    if (key == name) return value;
  }
  return Value();
}

Value view_attribute(const Value& owner, std::string_view name) {
  return name == "mapping" ? owner.as<View>().dict : Value();
}

Value range_attribute(const Value& owner, std::string_view name) {
  const auto& range = owner.as<RangeObject>();
  if (name == "start") return Value::integer(range.start);
  if (name == "stop") return Value::integer(range.stop);
  if (name == "step") return Value::integer(range.step);
  return sequence_method(owner, name);
}

Value character(Runtime& runtime, const Value& owner, int64_t index) {
  const std::string_view text = owner.text();
  const bool markup = owner.as<Text>().markup;
  if (owner.as<Text>().ascii)
    return make_string(runtime, std::string(1, text[static_cast<size_t>(index)]), markup);
  runtime.charge_copy(text);
  const size_t begin = byte_offset(text, index);
  size_t end = begin;
  next_code_point(text, end);
  return make_string(runtime, std::string(text.substr(begin, end - begin)), markup);
}

// x[key] itself; missing when Python raises LookupError or TypeError.
Value own_item(Runtime& runtime, const Value& owner, const Value& key) {
  switch (owner.kind()) {
    case Kind::dict: {
      if (key.is(Kind::list) || key.is(Kind::dict)) return Value();
      const Value* value = find(runtime, owner, key);
      return value != nullptr ? *value : Value();
    }
    case Kind::string:
    case Kind::list:
    case Kind::tuple:
    case Kind::range: {
      if (!key.is_integral()) return Value();
      const int64_t index = element_index(key.as_integer(), length(runtime, owner));
      if (index < 0) return Value();
      if (owner.is_string()) return character(runtime, owner, index);
      if (owner.is(Kind::range)) {
        const auto& range = owner.as<RangeObject>();
        return Value::integer(range.start + index * range.step);
      }
      return owner.as<Items>().values[static_cast<size_t>(index)];
    }
    default:
      return Value();
  }
}

struct Bounds {
  int64_t start = 0;
  int64_t count = 0;
  int64_t step = 1;
};

int64_t slice_number(const Value& value, int64_t when_none) {
  if (value.is(Kind::none)) return when_none;
  if (!value.is_integral()) fail_type("slice indices must be integers or None or have an __index__ method");
  return value.as_integer();
}

Bounds slice_bounds(int64_t size, const Value& start, const Value& stop, const Value& step) {
  Bounds out;
  out.step = slice_number(step, 1);
  if (out.step == 0) fail_value("slice step cannot be zero");
  out.step = std::max(out.step, -INT64_MAX);
  const int64_t low = out.step < 0 ? -1 : 0;
  const int64_t high = out.step < 0 ? size - 1 : size;
  const auto clamp = [&](const Value& value, int64_t when_none) {
    if (value.is(Kind::none)) return when_none;
    int64_t index = slice_number(value, 0);
    if (index < 0) index = index < -size ? low : std::max(index + size, low);
    return std::min(index, high);
  };
  out.start = clamp(start, out.step < 0 ? high : low);
  const int64_t end = clamp(stop, out.step < 0 ? low : high);
  out.count = RangeObject{out.start, end, out.step}.size();
  return out;
}

Value slice_string(Runtime& runtime, const Value& owner, const Bounds& bounds) {
  const std::string_view text = owner.text();
  const bool markup = owner.as<Text>().markup;
  if (bounds.count == 0) return make_string(runtime, "", markup);
  if (bounds.step == 1) {
    const bool ascii = owner.as<Text>().ascii;
    if (!ascii) runtime.charge_copy(text);
    const size_t begin = ascii ? static_cast<size_t>(bounds.start) : byte_offset(text, bounds.start);
    const std::string_view rest = text.substr(begin);
    const size_t size = ascii ? static_cast<size_t>(bounds.count) : byte_offset(rest, bounds.count);
    return make_string(runtime, std::string(rest.substr(0, size)), markup);
  }
  runtime.charge_scan(text);
  const auto code_points = to_code_points(text);
  std::string out;
  for (int64_t i = 0; i < bounds.count; ++i) {
    append_code_point(out, code_points[static_cast<size_t>(bounds.start + i * bounds.step)]);
  }
  return make_string(runtime, std::move(out), markup);
}

}  // namespace

int64_t element_index(int64_t index, int64_t size) {
  if (index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

bool is_unsafe_attribute(const Value& owner, std::string_view name) {
  if (!name.empty() && name[0] == '_') return true;
  static constexpr std::array<std::string_view, 5> kDict = {"clear", "pop", "popitem", "setdefault",
                                                            "update"};
  static constexpr std::array<std::string_view, 8> kList = {"append", "clear", "pop",    "reverse",
                                                            "insert", "sort",  "extend", "remove"};
  if (owner.is(Kind::dict)) return one_of(kDict, name);
  if (owner.is(Kind::list)) return one_of(kList, name);
  return owner.is(Kind::function) && type_name(owner) == "type" && name == "mro";
}

Value own_attribute(Runtime& runtime, const Value& owner, std::string_view name) {
  switch (owner.kind()) {
    case Kind::string:
      return string_method(owner, name);
    case Kind::dict:
      return dict_method(owner, name);
    case Kind::list:
    case Kind::tuple:
      return sequence_method(owner, name);
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
      return number_attribute(owner, name);
    case Kind::range:
      return range_attribute(owner, name);
    case Kind::view:
      return view_attribute(owner, name);
    case Kind::space:
      return space_attribute(owner, name);
    case Kind::loop:
      return loop_attribute(runtime, owner, name);
    case Kind::cycler:
    case Kind::joiner:
      return helper_attribute(runtime, owner, name);
    case Kind::function:
      return owner.as<Function>().attribute ? owner.as<Function>().attribute(runtime, name) : Value();
    default:
      return Value();
  }
}

Value get_attribute(Runtime& runtime, const Value& owner, const Value& name) {
  if (owner.is_undefined()) fail_undefined(owner);
  const std::string_view attribute = name.text();
  Value value = own_attribute(runtime, owner, attribute);
  if (!value.is_missing() || has_private(owner, attribute)) {
    if (is_unsafe_attribute(owner, attribute)) return unsafe_member(owner, attribute);
    if (!value.is_missing()) return value;
  }
  value = own_item(runtime, owner, name);
  return value.is_missing() ? undefined_member(owner, name) : value;
}

Value get_item(Runtime& runtime, const Value& owner, const Value& key) {
  if (owner.is_undefined()) fail_undefined(owner);
  Value value = own_item(runtime, owner, key);
  if (!value.is_missing()) return value;
  if (key.is_string()) {
    value = own_attribute(runtime, owner, key.text());
    if (!value.is_missing() || has_private(owner, key.text())) {
      if (is_unsafe_attribute(owner, key.text())) return unsafe_member(owner, key.text());
      if (!value.is_missing()) return value;
    }
  }
  return undefined_member(owner, key);
}

Value get_slice(Runtime& runtime, const Value& owner, const Value& start, const Value& stop,
                const Value& step) {
  if (owner.is_undefined()) fail_undefined(owner);
  if (!owner.is_string() && !owner.is_sequence() && !owner.is(Kind::range)) {
    if (owner.is(Kind::dict)) fail_type("unhashable type: 'slice'");
    fail_type(fmt::format("'{}' object is not subscriptable", type_name(owner)));
  }
  const Bounds bounds = slice_bounds(length(runtime, owner), start, stop, step);
  if (owner.is_string()) return slice_string(runtime, owner, bounds);
  if (owner.is(Kind::range)) {
    const auto& range = owner.as<RangeObject>();
    const int64_t first = range.start + bounds.start * range.step;
    int64_t stride = 0;
    int64_t end = 0;
    if (__builtin_mul_overflow(range.step, bounds.step, &stride) ||
        __builtin_mul_overflow(bounds.count, stride, &end) || __builtin_add_overflow(first, end, &end)) {
      fail_overflow();
    }
    return make_range(first, end, stride);
  }
  std::vector<Value> out;
  out.reserve(static_cast<size_t>(bounds.count));
  for (int64_t i = 0; i < bounds.count; ++i) {
    out.push_back(owner.as<Items>().values[static_cast<size_t>(bounds.start + i * bounds.step)]);
  }
  return owner.is(Kind::list) ? make_list(runtime, std::move(out)) : make_tuple(runtime, std::move(out));
}

Value call_value(Runtime& runtime, const Value& callee, CallArguments arguments) {
  DepthGuard depth(runtime);
  switch (callee.kind()) {
    case Kind::undefined:
      fail_undefined(callee);
    case Kind::function: {
      const auto& function = callee.as<Function>();
      return function.call(runtime, function.self, std::move(arguments));
    }
    case Kind::loop:
      return loop_call(runtime, callee, arguments);
    case Kind::joiner:
      return joiner_call(runtime, callee, arguments);
    default:
      fail_type(fmt::format("'{}' object is not callable", type_name(callee)));
  }
}

}  // namespace tenon::jinja
