// Filters that give a number, or text about one.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "text/jinja_arguments.h"
#include "text/jinja_filters.h"
#include "text/jinja_literal.h"
#include "text/jinja_operators.h"

namespace tenon::jinja {
namespace {

Value absolute(Runtime&, const Value& input, CallArguments arguments) {
  bind("abs", std::move(arguments), {}, 0);
  if (input.is(Kind::real)) return Value::real(std::fabs(input.as_real()));
  if (!input.is_integral()) fail_type(fmt::format("bad operand type for abs(): '{}'", type_name(input)));
  return input.as_integer() < 0 ? negate(input) : plus(input);
}

// int(x) of a float; nothing for NaN, which Python refuses with ValueError.
bool truncated(double value, int64_t& out) {
  if (std::isnan(value)) return false;
  if (std::isinf(value)) fail("OverflowError", "cannot convert float infinity to integer");
  if (std::fabs(value) >= 9.2e18) fail_overflow();
  out = static_cast<int64_t>(value);
  return true;
}

Value to_integer(Runtime&, const Value& input, CallArguments arguments) {
  const auto args = bind("int", std::move(arguments), {"default", "base"}, 0);
  const Value otherwise = args[0].is_missing() ? Value::integer(0) : args[0];
  const int64_t base = args[1].is_missing() ? 10 : index_argument(args[1]);
  if (input.is_undefined()) fail_undefined(input);
  if (input.is_integral()) return Value::integer(input.as_integer());
  int64_t out = 0;
  if (input.is(Kind::real)) return truncated(input.as_real(), out) ? Value::integer(out) : otherwise;
  if (!input.is_string()) return otherwise;
  if (base == 0 || (base >= 2 && base <= 36)) {
    bool overflow = false;
    if (const auto value = parse_integer(input.text(), static_cast<int>(base), overflow))
      return Value::integer(*value);
    if (overflow) fail_overflow();
  }
  const auto real = parse_real(input.text());
  if (!real || std::isinf(*real)) return otherwise;
  return truncated(*real, out) ? Value::integer(out) : otherwise;
}

Value to_real(Runtime&, const Value& input, CallArguments arguments) {
  const auto args = bind("float", std::move(arguments), {"default"}, 0);
  if (input.is_undefined()) fail_undefined(input);
  if (input.is_number()) return Value::real(input.as_real());
  if (input.is_string()) {
    if (const auto value = parse_real(input.text())) return Value::real(*value);
  }
  return args[0].is_missing() ? Value::real(0) : args[0];
}

// round(x, n) of Python: to the nearest with ties to even, on the exact value.
double round_real(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 300) return value;
  if (precision < 0) {
    if (precision < -308) return std::copysign(0.0, value);
    const double unit = std::pow(10.0, static_cast<double>(-precision));
    return std::nearbyint(value / unit) * unit;
  }
  std::array<char, 700> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.*f", static_cast<int>(precision), value);
  return std::strtod(buffer.data(), nullptr);
}

int64_t round_integer(int64_t value, int64_t precision) {
  if (precision >= 0) return value;
  if (precision < -18) return 0;
  int64_t unit = 1;
  for (int64_t i = 0; i < -precision; ++i) unit *= 10;
  const int64_t down = floor_divide(value, unit);
  const int64_t rest = value - down * unit;
  const bool up = rest > unit - rest || (rest == unit - rest && down % 2 != 0);
  int64_t out = 0;
  if (__builtin_mul_overflow(up ? down + 1 : down, unit, &out)) fail_overflow();
  return out;
}

Value round_filter(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("round", std::move(arguments), {"precision", "method"}, 0);
  const int64_t precision = args[0].is_missing() ? 0 : index_argument(args[0]);
  const std::string method = args[1].is_missing() ? "common" : to_text(runtime, args[1]);
  if (method != "common" && method != "ceil" && method != "floor") {
    fail("FilterArgumentError", "method must be common, ceil or floor");
  }
  if (input.is_undefined()) {
    if (method == "common") fail_type("type Undefined doesn't define __round__ method");
    fail_undefined(input);
  }
  if (!input.is_number()) fail_type(fmt::format("type {} doesn't define __round__ method", type_name(input)));
  if (method == "common") {
    if (input.is_integral()) return Value::integer(round_integer(input.as_integer(), precision));
    return Value::real(round_real(input.as_real(), precision));
  }
  const Value ten = Value::integer(10);
  const Value unit = binary_operation(runtime, "**", ten, Value::integer(precision));
  const Value scaled = binary_operation(runtime, "*", input, unit);
  const double whole = method == "ceil" ? std::ceil(scaled.as_real()) : std::floor(scaled.as_real());
  int64_t integer = 0;
  if (!truncated(whole, integer)) fail_value("cannot convert float NaN to integer");
  return binary_operation(runtime, "/", Value::integer(scaled.is_integral() ? scaled.as_integer() : integer),
                          unit);
}

Value filesizeformat(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("filesizeformat", std::move(arguments), {"binary"}, 0);
  const bool binary = flag_argument(args[0], false);
  double bytes = 0;
  if (input.is_undefined()) fail_undefined(input);
  if (input.is_number()) {
    bytes = input.as_real();
  } else {
    const auto value = input.is_string() ? parse_real(input.text()) : std::nullopt;
    if (!value) fail_value("could not convert to float");
    bytes = *value;
  }
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return make_string(runtime, "1 Byte");
  if (bytes < base) return make_string(runtime, fmt::format("{} Bytes", static_cast<int64_t>(bytes)));
  static constexpr std::array<const char*, 8> kPrefixes = {"k", "M", "G", "T", "P", "E", "Z", "Y"};
  double unit = base;
  for (size_t i = 0; i < kPrefixes.size(); ++i) {
    unit *= base;
    if (bytes < unit || i + 1 == kPrefixes.size()) {
      const std::string prefix =
          binary ? fmt::format("{}iB", i == 0 ? "K" : kPrefixes[i]) : fmt::format("{}B", kPrefixes[i]);
      return make_string(runtime, fmt::format("{:.1f} {}", base * bytes / unit, prefix));
    }
  }
  return Value();
}

Value sum(Runtime& runtime, const Value& input, CallArguments arguments) {
  const auto args = bind("sum", std::move(arguments), {"attribute", "start"}, 0);
  Value out = args[1].is_missing() ? Value::integer(0) : args[1];
  if (out.is_string()) fail_type("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& value : elements(runtime, input)) {
    const Value term = attribute_path(runtime, value, args[0]);
    out = binary_operation(runtime, "+", out, term);
  }
  return out;
}

constexpr FilterEntry kFilters[] = {
    {"abs", absolute},       {"filesizeformat", filesizeformat},
    {"float", to_real},      {"int", to_integer},
    {"round", round_filter}, {"sum", sum},
};

}  // namespace

FilterTable number_filters() {
  return {kFilters, std::size(kFilters)};
}

}  // namespace tenon::jinja
