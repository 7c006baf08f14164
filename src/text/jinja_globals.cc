// The global functions, and the small objects that some of them make.
#include "text/jinja_globals.h"

#include <fmt/format.h>

#include "text/jinja_arguments.h"
#include "text/jinja_time.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // of jinja2's sandbox

Value range(Runtime&, const Value&, CallArguments arguments) {
  const auto args = bind_positional("range", std::move(arguments), 1, 3);
  const int64_t first = index_argument(args[0]);
  const int64_t start = args[1].is_missing() ? 0 : first;
  const int64_t stop = args[1].is_missing() ? first : index_argument(args[1]);
  const int64_t step = args[2].is_missing() ? 1 : index_argument(args[2]);
  if (step == 0) fail_value("range() arg 3 must not be zero");
  const Value out = make_range(start, stop, step);
  if (out.as<RangeObject>().size() > kMaxRange) {
    fail("OverflowError",
         fmt::format("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange));
  }
  return out;
}

// dict(mapping or pairs, name=value, ...) and namespace(...) read their arguments alike.
Value make_dict(Runtime& runtime, std::string_view function, CallArguments arguments) {
  if (arguments.positional.size() > 1) {
    fail_type(fmt::format("{} expected at most 1 argument, got {}", function, arguments.positional.size()));
  }
  DictBuilder out(runtime);
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (from.is(Kind::dict)) {
      for (const auto& [key, value] : from.as<Dict>().entries) out.set(key, value);
    } else {
      int64_t index = 0;
      for (const Value& pair : elements(runtime, from)) {
        if (!is_iterable(pair)) {
          fail_type(
              fmt::format("cannot convert dictionary update sequence element #{} to a sequence", index));
        }
        const auto values = elements(runtime, pair);
        if (values.size() != 2) {
          fail_value(fmt::format("dictionary update sequence element #{} has length {}; 2 is required", index,
                                 values.size()));
        }
        out.set(values[0], values[1]);
        ++index;
      }
    }
  }
  for (auto& [key, value] : arguments.keywords) out.set(make_string(runtime, key), std::move(value));
  return out.finish();
}

Value dict(Runtime& runtime, const Value&, CallArguments arguments) {
  return make_dict(runtime, "dict", std::move(arguments));
}

Value name_space(Runtime& runtime, const Value&, CallArguments arguments) {
  const Value from = make_dict(runtime, "dict", std::move(arguments));
  auto space = std::make_shared<Space>();
  for (const auto& [key, value] : from.as<Dict>().entries) {
    if (key.is_string()) space->attributes.emplace_back(std::string(key.text()), value);
  }
  runtime.spaces.push_back(space);
  return Value::object(Kind::space, std::move(space));
}

Value cycler(Runtime&, const Value&, CallArguments arguments) {
  if (arguments.positional.empty()) fail("RuntimeError", "at least one item has to be provided");
  bind("cycler", CallArguments{{}, std::move(arguments.keywords)}, {}, 0);
  const int depth = nested_depth(arguments.positional);
  return Value::object(Kind::cycler, std::make_shared<Cycler>(Cycler{std::move(arguments.positional), 0}),
                       depth);
}

Value joiner(Runtime& runtime, const Value&, CallArguments arguments) {
  const auto args = bind("joiner", std::move(arguments), {"sep"}, 0);
  std::string separator = args[0].is_missing() ? ", " : to_text(runtime, args[0]);
  return Value::object(Kind::joiner, std::make_shared<Joiner>(Joiner{std::move(separator), false}));
}

Value cycler_next(Runtime&, const Value& self, CallArguments arguments) {
  bind_positional("next", std::move(arguments), 0, 0);
  Cycler& cycler = self.as<Cycler>();
  const Value out = cycler.values[cycler.next];
  cycler.next = (cycler.next + 1) % cycler.values.size();
  return out;
}

Value cycler_reset(Runtime&, const Value& self, CallArguments arguments) {
  bind_positional("reset", std::move(arguments), 0, 0);
  self.as<Cycler>().next = 0;
  return Value::none();
}

Value raise_exception(Runtime& runtime, const Value&, CallArguments arguments) {
  const auto args = bind("raise_exception", std::move(arguments), {"message"}, 1);
  fail("TemplateError", to_text(runtime, args[0]));
}

Value strftime_now(Runtime& runtime, const Value&, CallArguments arguments) {
  const auto args = bind("strftime_now", std::move(arguments), {"format"}, 1);
  const std::string_view format = string_argument(args[0], "strftime() argument 1");
  if (!runtime.clock_unix_seconds)
    fail_unsupported("the template asks for the time, and the render was given no clock");
  return make_string(runtime,
                     format_time(runtime, *runtime.clock_unix_seconds + runtime.utc_offset_seconds, format));
}

Value lipsum(Runtime&, const Value&, CallArguments) {
  fail_unsupported("lipsum() makes random text and is not supported");
}

}  // namespace

std::vector<std::pair<std::string, Value>> make_globals(Runtime&) {
  std::vector<std::pair<std::string, Value>> out;
  const auto add = [&](const char* name, const char* type,
                       Value (*call)(Runtime&, const Value&, CallArguments)) {
    out.emplace_back(name, make_function(name, type, Value(), call));
  };
  add("range", "function", range);
  add("dict", "type", dict);
  add("namespace", "type", name_space);
  add("cycler", "type", cycler);
  add("joiner", "type", joiner);
  add("lipsum", "function", lipsum);
  add("raise_exception", "function", raise_exception);
  add("strftime_now", "function", strftime_now);
  return out;
}

Value helper_attribute(Runtime& runtime, const Value& owner, std::string_view name) {
  if (owner.is(Kind::joiner)) {
    const Joiner& joiner = owner.as<Joiner>();
    if (name == "sep") return make_string(runtime, joiner.separator);
    return name == "used" ? Value::boolean(joiner.used) : Value();
  }
  const Cycler& cycler = owner.as<Cycler>();
  if (name == "current") return cycler.values[cycler.next];
  if (name == "pos") return Value::integer(static_cast<int64_t>(cycler.next));
  if (name == "items") return make_tuple(runtime, cycler.values);
  if (name == "next") return make_function("next", "method", owner, cycler_next);
  return name == "reset" ? make_function("reset", "method", owner, cycler_reset) : Value();
}

Value joiner_call(Runtime& runtime, const Value& value, const CallArguments& arguments) {
  bind_positional("joiner", arguments, 0, 0);
  Joiner& joiner = value.as<Joiner>();
  const bool used = std::exchange(joiner.used, true);
  return make_string(runtime, used ? joiner.separator : "");
}

}  // namespace tenon::jinja
