// Truth, equality, identity, hash and order of values, as Python has them.
#include <fmt/format.h>

#include <cmath>

#include "text/jinja_value.h"

namespace tenon::jinja {
namespace {

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
      runtime.charge_copy(a.text());
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
      runtime.charge_copy(value.text());
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
    runtime.charge_copy(a.text().substr(0, b.text().size()));
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

}  // namespace tenon::jinja
