// Arithmetic, concatenation, repetition, membership and order, with Python's errors.
#include "text/jinja_operators.h"

#include <fmt/format.h>

#include <cmath>

#include "text/jinja_format.h"
#include "text/jinja_loop.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

[[noreturn]] void fail_operands(std::string_view op, const Value& left, const Value& right) {
  const std::string_view shown = op == "**" ? "** or pow()" : op;
  fail_type(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", shown, type_name(left),
                        type_name(right)));
}

Value integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("ZeroDivisionError", "0.0 cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) fail_overflow();
  }
  return Value::integer(result);
}

Value real_power(double base, double exponent) {
  if (base == 0 && exponent < 0) fail("ZeroDivisionError", "0.0 cannot be raised to a negative power");
  if (base < 0 && std::isfinite(exponent) && exponent != std::floor(exponent)) {
    fail_unsupported("complex numbers are not supported");
  }
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) {
    fail("OverflowError", "(34, 'Numerical result out of range')");
  }
  return Value::real(result);
}

double real_modulo(double a, double b) {
  double mod = std::fmod(a, b);
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) mod += b;
  } else {
    mod = std::copysign(0.0, b);
  }
  return mod;
}

double real_floor_divide(double a, double b) {
  const double mod = real_modulo(a, b);
  const double div = (a - mod) / b;
  if (div == 0) return std::copysign(0.0, a / b);
  double floored = std::floor(div);
  if (div - floored > 0.5) floored += 1.0;
  return floored;
}

Value integer_operation(std::string_view op, int64_t a, int64_t b) {
  int64_t out = 0;
  if (op == "+") {
    if (__builtin_add_overflow(a, b, &out)) fail_overflow();
  } else if (op == "-") {
    if (__builtin_sub_overflow(a, b, &out)) fail_overflow();
  } else if (op == "*") {
    if (__builtin_mul_overflow(a, b, &out)) fail_overflow();
  } else if (op == "**") {
    return integer_power(a, b);
  } else if (b == 0) {
    fail("ZeroDivisionError", op == "/" ? "division by zero" : "integer division or modulo by zero");
  } else if (op == "/") {
    return Value::real(static_cast<double>(a) / static_cast<double>(b));
  } else if (a == INT64_MIN && b == -1) {
    if (op == "//") fail_overflow();
    out = 0;
  } else {
    out = op == "//" ? floor_divide(a, b) : floor_modulo(a, b);
  }
  return Value::integer(out);
}

Value real_operation(std::string_view op, double a, double b) {
  if (op == "+") return Value::real(a + b);
  if (op == "-") return Value::real(a - b);
  if (op == "*") return Value::real(a * b);
  if (op == "**") return real_power(a, b);
  if (b == 0) {
    fail("ZeroDivisionError", op == "/"    ? "float division by zero"
                              : op == "//" ? "float floor division by zero"
                                           : "float modulo");
  }
  if (op == "/") return Value::real(a / b);
  return Value::real(op == "//" ? real_floor_divide(a, b) : real_modulo(a, b));
}

Value repeat(Runtime& runtime, const Value& value, int64_t times) {
  times = std::max<int64_t>(times, 0);
  if (value.is_string()) {
    const auto size = static_cast<int64_t>(value.text().size());
    int64_t total = 0;
    if (__builtin_mul_overflow(size, times, &total)) total = INT64_MAX;
    runtime.check_string(total);
    std::string out;
    out.reserve(static_cast<size_t>(total));
    for (int64_t i = 0; i < times && size > 0; ++i) out += value.text();
    return make_string(runtime, std::move(out), value.as<Text>().markup);
  }
  const auto& items = value.as<Items>().values;
  int64_t total = 0;
  if (__builtin_mul_overflow(static_cast<int64_t>(items.size()), times, &total)) total = INT64_MAX;
  runtime.charge(total);
  std::vector<Value> out;
  out.reserve(static_cast<size_t>(total));
  for (int64_t i = 0; i < times && !items.empty(); ++i) out.insert(out.end(), items.begin(), items.end());
  return value.is(Kind::list) ? make_list(runtime, std::move(out)) : make_tuple(runtime, std::move(out));
}

Value join_sequences(Runtime& runtime, const Value& left, const Value& right) {
  std::vector<Value> out = left.as<Items>().values;
  const auto& more = right.as<Items>().values;
  runtime.charge(static_cast<int64_t>(out.size() + more.size()) / 2);
  out.insert(out.end(), more.begin(), more.end());
  return left.is(Kind::list) ? make_list(runtime, std::move(out)) : make_tuple(runtime, std::move(out));
}

bool repeatable(const Value& value) {
  return value.is_string() || value.is_sequence();
}

Value add(Runtime& runtime, const Value& left, const Value& right) {
  if (left.is_string()) {
    if (right.is_string()) return add_strings(runtime, left, right);
    fail_type(fmt::format("can only concatenate str (not \"{}\") to str", type_name(right)));
  }
  if (left.is_sequence()) {
    if (right.kind() == left.kind()) return join_sequences(runtime, left, right);
    fail_type(fmt::format("can only concatenate {} (not \"{}\") to {}", type_name(left), type_name(right),
                          type_name(left)));
  }
  fail_operands("+", left, right);
}

}  // namespace

int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

int64_t floor_modulo(int64_t a, int64_t b) {
  const int64_t rest = a % b;
  return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

Value negate(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (value.is(Kind::real)) return Value::real(-value.as_real());
  if (!value.is_integral()) fail_type(fmt::format("bad operand type for unary -: '{}'", type_name(value)));
  if (value.as_integer() == INT64_MIN) fail_overflow();
  return Value::integer(-value.as_integer());
}

Value plus(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
  if (value.is(Kind::real)) return value;
  if (!value.is_integral()) fail_type(fmt::format("bad operand type for unary +: '{}'", type_name(value)));
  return Value::integer(value.as_integer());
}

Value binary_operation(Runtime& runtime, std::string_view op, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    if (left.is_integral() && right.is_integral())
      return integer_operation(op, left.as_integer(), right.as_integer());
    return real_operation(op, left.as_real(), right.as_real());
  }
  if (op == "%" && left.is_string()) return percent_format(runtime, left, right);
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined()) fail_undefined(right);
  if (op == "+") return add(runtime, left, right);
  if (op == "*") {
    if (repeatable(left) && right.is_integral()) return repeat(runtime, left, right.as_integer());
    if (repeatable(right) && left.is_integral()) return repeat(runtime, right, left.as_integer());
    if (repeatable(left) || repeatable(right)) {
      fail_type(fmt::format("can't multiply sequence by non-int of type '{}'",
                            type_name(repeatable(left) ? right : left)));
    }
  }
  fail_operands(op, left, right);
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  runtime.charge(1);
  switch (container.kind()) {
    case Kind::string:
      if (!item.is_string()) {
        fail_type(fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
      }
      runtime.charge_copy(container.text());
      return find_text(container.text(), item.text()) != std::string_view::npos;
    case Kind::dict:
      return find(runtime, container, item) != nullptr;
    case Kind::list:
    case Kind::tuple:
      for (const Value& value : container.as<Items>().values) {
        if (equal(runtime, value, item)) return true;
      }
      return false;
    case Kind::range: {
      const auto& range = container.as<RangeObject>();
      if (!item.is_number()) return false;
      const double real = item.as_real();
      if (item.is(Kind::real) && (real != std::floor(real) || std::fabs(real) > 9e18)) return false;
      const int64_t value = item.is(Kind::real) ? static_cast<int64_t>(real) : item.as_integer();
      const bool inside = range.step > 0 ? value >= range.start && value < range.stop
                                         : value <= range.start && value > range.stop;
      return inside && (static_cast<__int128>(value) - range.start) % range.step == 0;
    }
    case Kind::view:
      if (container.as<View>().what == View::What::keys) {
        return find(runtime, container.as<View>().dict, item) != nullptr;
      }
      [[fallthrough]];
    case Kind::undefined:
    case Kind::iterator: {
      ElementSource source(runtime, container);
      Value value;
      while (source.next(runtime, value)) {
        if (equal(runtime, value, item)) return true;
      }
      return false;
    }
    default:
      fail_type(fmt::format("argument of type '{}' is not iterable", type_name(container)));
  }
}

bool compare_operation(Runtime& runtime, std::string_view op, const Value& left, const Value& right) {
  if (op == "==") return equal(runtime, left, right);
  if (op == "!=") return !equal(runtime, left, right);
  if (op == "in") return contains(runtime, right, left);
  if (op == "not in") return !contains(runtime, right, left);
  const int order = compare(runtime, left, right, op);
  if (order == 2 && left.is_number()) return false;
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  if (op == ">") return order > 0;
  return order >= 0;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string escaped_text(Runtime& runtime, const Value& value) {
  std::string text = to_text(runtime, value);
  runtime.charge_scan(text);
  return value.is_string() && value.as<Text>().markup ? text : escape_html(text);
}

Value add_strings(Runtime& runtime, const Value& left, const Value& right) {
  const bool markup = left.as<Text>().markup || right.as<Text>().markup;
  runtime.check_string(static_cast<int64_t>(left.text().size() + right.text().size()));
  std::string out = markup ? escaped_text(runtime, left) : std::string(left.text());
  if (markup) {
    out += escaped_text(runtime, right);
  } else {
    out += right.text();
  }
  return make_string(runtime, std::move(out), markup);
}

}  // namespace tenon::jinja
