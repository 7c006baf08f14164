// The methods of dict, list, tuple and range, and the attributes of numbers.
#include <fmt/format.h>

#include <cmath>

#include "text/jinja_arguments.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"

namespace tenon::jinja {
namespace {

// What the sandbox withholds exists all the same: `is_unsafe_attribute` answers before a call.
Value withheld(Runtime&, const Value& self, CallArguments) {
  fail("SecurityError", fmt::format("the method of '{}' is unsafe", type_name(self)));
}

Value get(Runtime& runtime, const Value& self, CallArguments arguments) {
  const auto args = bind_positional("get", std::move(arguments), 1, 2);
  if (const Value* value = find(runtime, self, args[0])) return *value;
  return args[1].is_missing() ? Value::none() : args[1];
}

template <View::What what>
Value view_of(Runtime& runtime, const Value& self, CallArguments arguments) {
  bind_positional("dict view", std::move(arguments), 0, 0);
  return make_view(runtime, what, self);
}

Value copy(Runtime& runtime, const Value& self, CallArguments arguments) {
  bind_positional("copy", std::move(arguments), 0, 0);
  if (self.is(Kind::list)) return make_list(runtime, self.as<Items>().values);
  DictBuilder out(runtime);
  for (const auto& [key, value] : self.as<Dict>().entries) out.set(key, value);
  return out.finish();
}

Value fromkeys(Runtime& runtime, const Value&, CallArguments arguments) {
  const auto args = bind_positional("fromkeys", std::move(arguments), 1, 2);
  DictBuilder out(runtime);
  for (const Value& key : elements(runtime, args[0]))
    out.set(key, args[1].is_missing() ? Value::none() : args[1]);
  return out.finish();
}

Value count(Runtime& runtime, const Value& self, CallArguments arguments) {
  const auto args = bind_positional("count", std::move(arguments), 1, 1);
  int64_t out = 0;
  for (const Value& value : elements(runtime, self)) out += equal(runtime, value, args[0]) ? 1 : 0;
  return Value::integer(out);
}

Value index(Runtime& runtime, const Value& self, CallArguments arguments) {
  const auto args = bind_positional("index", std::move(arguments), 1, self.is(Kind::range) ? 1 : 3);
  const auto values = elements(runtime, self);
  const auto size = static_cast<int64_t>(values.size());
  int64_t begin = args.size() > 1 ? index_or(args[1], 0) : 0;
  int64_t end = args.size() > 2 ? index_or(args[2], size) : size;
  if (begin < 0) begin = std::max<int64_t>(begin + size, 0);
  if (end < 0) end += size;
  for (int64_t i = begin; i < std::min(end, size); ++i) {
    if (equal(runtime, values[static_cast<size_t>(i)], args[0])) return Value::integer(i);
  }
  if (self.is(Kind::tuple)) fail_value("tuple.index(x): x not in tuple");
  fail_value(fmt::format("{} is not in {}", to_repr(runtime, args[0]), type_name(self)));
}

Value is_integer(Runtime&, const Value& self, CallArguments arguments) {
  bind_positional("is_integer", std::move(arguments), 0, 0);
  const double value = self.as_real();
  return Value::boolean(std::isfinite(value) && value == std::floor(value));
}

Value bit_length(Runtime&, const Value& self, CallArguments arguments) {
  bind_positional("bit_length", std::move(arguments), 0, 0);
  const int64_t value = self.as_integer();
  uint64_t size = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  int64_t bits = 0;
  for (; size != 0; size >>= 1) ++bits;
  return Value::integer(bits);
}

Value conjugate(Runtime&, const Value& self, CallArguments arguments) {
  bind_positional("conjugate", std::move(arguments), 0, 0);
  return self.is(Kind::real) ? self : plus(self);
}

Value refused(Runtime&, const Value&, CallArguments) {
  fail_unsupported("this method is not supported");
}

constexpr MethodEntry kDictMethods[] = {
    {"get", get},
    {"items", view_of<View::What::items>},
    {"keys", view_of<View::What::keys>},
    {"copy", copy},
    {"values", view_of<View::What::values>},
    {"fromkeys", fromkeys},
    {"clear", withheld},
    {"pop", withheld},
    {"popitem", withheld},
    {"setdefault", withheld},
    {"update", withheld},
};

constexpr MethodEntry kListMethods[] = {
    {"append", withheld}, {"clear", withheld},   {"copy", copy},       {"count", count},
    {"extend", withheld}, {"index", index},      {"insert", withheld}, {"pop", withheld},
    {"remove", withheld}, {"reverse", withheld}, {"sort", withheld},
};

constexpr MethodEntry kTupleMethods[] = {{"count", count}, {"index", index}};

constexpr MethodEntry kIntegerMethods[] = {
    {"bit_length", bit_length}, {"conjugate", conjugate}, {"as_integer_ratio", refused},
    {"bit_count", refused},     {"from_bytes", refused},  {"to_bytes", refused},
};

constexpr MethodEntry kRealMethods[] = {
    {"is_integer", is_integer}, {"conjugate", conjugate}, {"as_integer_ratio", refused},
    {"fromhex", refused},       {"hex", refused},
};

template <size_t N>
Value lookup(const MethodEntry (&table)[N], const Value& owner, std::string_view name) {
  for (const auto& entry : table) {
    if (entry.name == name) {
      return make_function(std::string(name), "builtin_function_or_method", owner, entry.call);
    }
  }
  return Value();
}

}  // namespace

Value dict_method(const Value& owner, std::string_view name) {
  return lookup(kDictMethods, owner, name);
}

Value sequence_method(const Value& owner, std::string_view name) {
  if (owner.is(Kind::list)) return lookup(kListMethods, owner, name);
  if (owner.is(Kind::tuple) && owner.as<Items>().group) {
    const auto& values = owner.as<Items>().values;
    if (name == "grouper") return values[0];
    if (name == "list") return values[1];
  }
  return lookup(kTupleMethods, owner, name);
}

Value number_attribute(const Value& owner, std::string_view name) {
  const bool real = owner.is(Kind::real);
  if (name == "real") return real ? owner : plus(owner);
  if (name == "imag") return real ? Value::real(0) : Value::integer(0);
  if (!real && name == "numerator") return plus(owner);
  if (!real && name == "denominator") return Value::integer(1);
  return real ? lookup(kRealMethods, owner, name) : lookup(kIntegerMethods, owner, name);
}

}  // namespace tenon::jinja
