// Making, hashing, comparing and walking values.
#include "text/jinja_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja_loop.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

constexpr size_t kIndexFrom = 12;  // a dict of fewer entries is searched entry by entry

int checked_depth(int depth) {
  if (depth > kMaxValueDepth)
    fail_budget(fmt::format("the template nests values more than {} deep", kMaxValueDepth));
  return depth;
}

size_t mix(size_t hash, size_t next) {
  return (hash ^ next) * 0x9e3779b97f4a7c15ull + 0x7f4a7c15;
}

bool equal_items(Runtime& runtime, const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal(runtime, a[i], b[i])) return false;
  }
  return true;
}

bool equal_dicts(Runtime& runtime, const Value& a, const Value& b) {
  if (a.as<Dict>().entries.size() != b.as<Dict>().entries.size()) return false;
  for (const auto& [key, value] : a.as<Dict>().entries) {
    const Value* other = find(runtime, b, key);
    if (other == nullptr || !equal(runtime, value, *other)) return false;
  }
  return true;
}

bool equal_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_integer() == b.as_integer();
  if (a.is(Kind::real) && b.is(Kind::real)) return a.as_real() == b.as_real();
  // int against float: exact, as Python does it.
  const double real = a.is(Kind::real) ? a.as_real() : b.as_real();
  const int64_t integer = a.is(Kind::real) ? b.as_integer() : a.as_integer();
  return real == std::floor(real) && std::fabs(real) < 9.3e18 &&
         static_cast<__int128>(real) == static_cast<__int128>(integer);
}

int compare_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) {
    return a.as_integer() < b.as_integer() ? -1 : a.as_integer() > b.as_integer() ? 1 : 0;
  }
  if (equal_numbers(a, b)) return 0;
  const double x = a.as_real();
  const double y = b.as_real();
  if (std::isnan(x) || std::isnan(y)) return 2;
  if (x != y) return x < y ? -1 : 1;
  // Equal once rounded: the integer decides against the exact value of the float.
  const auto exact = [](const Value& v) {
    return v.is(Kind::real) ? static_cast<__int128>(v.as_real()) : static_cast<__int128>(v.as_integer());
  };
  return exact(a) < exact(b) ? -1 : 1;
}

}  // namespace

int64_t RangeObject::size() const {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const auto span = step > 0 ? static_cast<__int128>(stop) - start : static_cast<__int128>(start) - stop;
  const auto stride = step > 0 ? static_cast<__int128>(step) : -static_cast<__int128>(step);
  const __int128 count = (span + stride - 1) / stride;
  return count > INT64_MAX ? INT64_MAX : static_cast<int64_t>(count);
}

int nested_depth(const std::vector<Value>& values) {
  int depth = 0;
  for (const Value& value : values) depth = std::max(depth, value.depth());
  return checked_depth(depth + 1);
}

Value make_string(Runtime& runtime, std::string bytes, bool markup) {
  runtime.check_string(static_cast<int64_t>(bytes.size()));
  runtime.charge_bytes(static_cast<int64_t>(bytes.size()));
  const bool ascii = is_ascii(bytes);
  return Value::object(Kind::string, std::make_shared<Text>(Text{std::move(bytes), ascii, markup}));
}

Value make_list(Runtime& runtime, std::vector<Value> values) {
  runtime.charge(static_cast<int64_t>(values.size()));
  const int depth = nested_depth(values);
  return Value::object(Kind::list, std::make_shared<Items>(Items{std::move(values), false}), depth);
}

Value make_tuple(Runtime& runtime, std::vector<Value> values, bool group) {
  runtime.charge(static_cast<int64_t>(values.size()));
  const int depth = nested_depth(values);
  return Value::object(Kind::tuple, std::make_shared<Items>(Items{std::move(values), group}), depth);
}

Value make_iterator(Runtime& runtime, std::vector<Value> values, const char* type_name,
                    std::shared_ptr<Failure> failure) {
  runtime.charge(static_cast<int64_t>(values.size()));
  const int depth = nested_depth(values);
  return Value::object(
      Kind::iterator,
      std::make_shared<Iterator>(Iterator{std::move(values), 0, std::move(failure), type_name}), depth);
}

Value make_view(Runtime& runtime, View::What what, const Value& dict) {
  runtime.charge(1);
  return Value::object(Kind::view, std::make_shared<View>(View{what, dict}), checked_depth(dict.depth() + 1));
}

Value make_range(int64_t start, int64_t stop, int64_t step) {
  return Value::object(Kind::range, std::make_shared<RangeObject>(RangeObject{start, stop, step}));
}

Value make_function(std::string name, const char* type_name, const Value& self,
                    std::function<Value(Runtime&, const Value&, CallArguments)> call) {
  auto function = std::make_shared<Function>();
  function->name = std::move(name);
  function->type_name = type_name;
  function->self = self;
  function->call = std::move(call);
  return Value::object(Kind::function, std::move(function), checked_depth(self.depth() + 1));
}

Value make_undefined(std::string hint) {
  auto object = std::make_shared<UndefinedObject>();
  object->hint = std::move(hint);
  return Value::object(Kind::undefined, std::move(object));
}

Value undefined_variable(std::string_view name) {
  auto object = std::make_shared<UndefinedObject>();
  object->name =
      Value::object(Kind::string, std::make_shared<Text>(Text{std::string(name), is_ascii(name), false}));
  return Value::object(Kind::undefined, std::move(object));
}

namespace {

std::string owner_name(const Value& owner) {
  switch (owner.kind()) {
    case Kind::none:
      return "None";
    case Kind::undefined:
      return "jinja2.runtime.Undefined object";
    case Kind::space:
      return "jinja2.utils.Namespace object";
    case Kind::loop:
      return "jinja2.runtime.LoopContext object";
    case Kind::cycler:
      return "jinja2.utils.Cycler object";
    case Kind::joiner:
      return "jinja2.utils.Joiner object";
    case Kind::function:
      if (type_name(owner) == "Macro") return "jinja2.runtime.Macro object";
      break;
    case Kind::string:
      if (owner.as<Text>().markup) return "markupsafe.Markup object";
      break;
    default:
      break;
  }
  return fmt::format("{} object", type_name(owner));
}

}  // namespace

Value undefined_member(const Value& owner, const Value& name) {
  auto object = std::make_shared<UndefinedObject>();
  object->owner_type = owner_name(owner);
  object->name = name;
  return Value::object(Kind::undefined, std::move(object), checked_depth(name.depth() + 1));
}

Value unsafe_member(const Value& owner, std::string_view name) {
  Value out = make_undefined(
      fmt::format("access to attribute {} of '{}' object is unsafe.", quote(name), type_name(owner)));
  out.as<UndefinedObject>().unsafe = true;
  return out;
}

bool DictBuilder::set(const Value& key, Value value) {
  runtime_.charge(1);
  const size_t hash = hash_of(runtime_, key);
  Dict& dict = *dict_;
  if (dict.index.empty()) {
    for (auto& [other, old] : dict.entries) {
      if (equal(runtime_, other, key)) {
        old = std::move(value);
        return false;
      }
    }
  } else {
    const auto [begin, end] = dict.index.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      auto& [other, old] = dict.entries[it->second];
      if (equal(runtime_, other, key)) {
        old = std::move(value);
        return false;
      }
    }
  }
  dict.entries.emplace_back(key, std::move(value));
  if (!dict.index.empty()) {
    dict.index.emplace(hash, static_cast<uint32_t>(dict.entries.size() - 1));
  } else if (dict.entries.size() > kIndexFrom) {
    for (size_t i = 0; i < dict.entries.size(); ++i) {
      dict.index.emplace(hash_of(runtime_, dict.entries[i].first), static_cast<uint32_t>(i));
    }
  }
  return true;
}

Value DictBuilder::finish() {
  int depth = 0;
  for (const auto& [key, value] : dict_->entries) depth = std::max({depth, key.depth(), value.depth()});
  return Value::object(Kind::dict, std::move(dict_), checked_depth(depth + 1));
}

const Value* find(Runtime& runtime, const Value& dict, const Value& key) {
  const Dict& d = dict.as<Dict>();
  const size_t hash = hash_of(runtime, key);
  if (d.index.empty()) {
    for (const auto& [other, value] : d.entries) {
      if (equal(runtime, other, key)) return &value;
    }
    return nullptr;
  }
  const auto [begin, end] = d.index.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const auto& [other, value] = d.entries[it->second];
    if (equal(runtime, other, key)) return &value;
  }
  return nullptr;
}

const Value* find(const Value& dict, std::string_view key) {
  const Dict& d = dict.as<Dict>();
  if (d.index.empty()) {
    for (const auto& [other, value] : d.entries) {
      if (other.is_string() && other.text() == key) return &value;
    }
    return nullptr;
  }
  const auto [begin, end] = d.index.equal_range(std::hash<std::string_view>()(key));
  for (auto it = begin; it != end; ++it) {
    const auto& [other, value] = d.entries[it->second];
    if (other.is_string() && other.text() == key) return &value;
  }
  return nullptr;
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.as_integer() != 0;
    case Kind::real:
      return value.as_real() != 0;
    case Kind::string:
      return !value.text().empty();
    case Kind::list:
    case Kind::tuple:
      return !value.as<Items>().values.empty();
    case Kind::dict:
      return !value.as<Dict>().entries.empty();
    case Kind::range:
      return value.as<RangeObject>().size() != 0;
    case Kind::view:
      return truth(value.as<View>().dict);
    default:
      return true;
  }
}

bool equal(Runtime& runtime, const Value& a, const Value& b) {
  runtime.charge(1);
  if (a.is_number() && b.is_number()) return equal_numbers(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::string:
      if (a.text().size() != b.text().size()) return false;
      runtime.charge_bytes(static_cast<int64_t>(a.text().size()));
      return a.text() == b.text();
    case Kind::list:
    case Kind::tuple:
      return a.identity() == b.identity() || equal_items(runtime, a.as<Items>().values, b.as<Items>().values);
    case Kind::dict:
      return a.identity() == b.identity() || equal_dicts(runtime, a, b);
    case Kind::range: {
      const auto& x = a.as<RangeObject>();
      const auto& y = b.as<RangeObject>();
      return x.size() == y.size() &&
             (x.size() == 0 || (x.start == y.start && (x.size() == 1 || x.step == y.step)));
    }
    case Kind::view: {
      const auto& x = a.as<View>();
      const auto& y = b.as<View>();
      if (x.what != y.what || x.what == View::What::values) return a.identity() == b.identity();
      if (x.what == View::What::items) return equal(runtime, x.dict, y.dict);
      if (length(runtime, x.dict) != length(runtime, y.dict)) return false;
      for (const auto& [key, value] : x.dict.as<Dict>().entries) {
        if (find(runtime, y.dict, key) == nullptr) return false;
      }
      return true;
    }
    case Kind::function: {
      const auto& x = a.as<Function>();
      const auto& y = b.as<Function>();
      return &x == &y || (x.name == y.name && !x.self.is_missing() && x.self.kind() == y.self.kind() &&
                          x.self.identity() == y.self.identity());
    }
    default:
      return a.identity() == b.identity();
  }
}

bool same_object(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is(Kind::none)) return true;
  if (a.is_integral()) return a.as_integer() == b.as_integer();
  if (a.is(Kind::real)) return a.as_real() == b.as_real();
  if (a.is_string()) return a.text() == b.text();
  return a.identity() == b.identity();
}

size_t hash_of(Runtime& runtime, const Value& value) {
  runtime.charge(1);
  switch (value.kind()) {
    case Kind::boolean:
    case Kind::integer:
      return std::hash<int64_t>()(value.as_integer());
    case Kind::real: {
      const double real = value.as_real();
      if (real == std::floor(real) && std::fabs(real) < 9.2e18) {
        return std::hash<int64_t>()(static_cast<int64_t>(real));
      }
      return std::hash<double>()(real);
    }
    case Kind::string:
      runtime.charge_bytes(static_cast<int64_t>(value.text().size()));
      return std::hash<std::string_view>()(value.text());
    case Kind::tuple: {
      size_t hash = 1;
      for (const Value& item : value.as<Items>().values) hash = mix(hash, hash_of(runtime, item));
      return hash;
    }
    case Kind::list:
      fail_type("unhashable type: 'list'");
    case Kind::dict:
      fail_type("unhashable type: 'dict'");
    case Kind::none:
    case Kind::undefined:
      return static_cast<size_t>(value.kind());
    case Kind::range:
      return static_cast<size_t>(value.as<RangeObject>().size());
    case Kind::view:
      if (value.as<View>().what != View::What::values)
        fail_type(fmt::format("unhashable type: '{}'", type_name(value)));
      return std::hash<const void*>()(value.identity());
    default:
      return std::hash<const void*>()(value.identity());
  }
}

int compare(Runtime& runtime, const Value& a, const Value& b, std::string_view op) {
  runtime.charge(1);
  if (a.is_undefined()) fail_undefined(a);
  if (b.is_undefined()) fail_undefined(b);
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  if (a.is_string() && b.is_string()) {
    runtime.charge_bytes(static_cast<int64_t>(std::min(a.text().size(), b.text().size())));
    return a.text().compare(b.text());
  }
  if (a.is_sequence() && a.kind() == b.kind()) {
    const auto& x = a.as<Items>().values;
    const auto& y = b.as<Items>().values;
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (!equal(runtime, x[i], y[i])) return compare(runtime, x[i], y[i], op);
    }
    return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
  }
  fail_type(
      fmt::format("'{}' not supported between instances of '{}' and '{}'", op, type_name(a), type_name(b)));
}

bool has_length(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::string:
    case Kind::list:
    case Kind::tuple:
    case Kind::dict:
    case Kind::range:
    case Kind::view:
    case Kind::loop:
      return true;
    default:
      return false;
  }
}

int64_t length(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::string:
      if (value.as<Text>().ascii) return static_cast<int64_t>(value.text().size());
      runtime.charge_bytes(static_cast<int64_t>(value.text().size()));
      return code_point_count(value.text());
    case Kind::list:
    case Kind::tuple:
      return static_cast<int64_t>(value.as<Items>().values.size());
    case Kind::dict:
      return static_cast<int64_t>(value.as<Dict>().entries.size());
    case Kind::range:
      return value.as<RangeObject>().size();
    case Kind::view:
      return length(runtime, value.as<View>().dict);
    case Kind::loop:
      return loop_length(runtime, value);
    default:
      fail_type(fmt::format("object of type '{}' has no len()", type_name(value)));
  }
}

}  // namespace tenon::jinja
