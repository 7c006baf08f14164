// str(), repr(), type names and iteration of values.
#include <fmt/format.h>

#include "text/jinja_literal.h"
#include "text/jinja_loop.h"
#include "text/jinja_unicode.h"
#include "text/jinja_value.h"

namespace tenon::jinja {
namespace {

class Printer {
 public:
  explicit Printer(Runtime& runtime) : runtime_(runtime) {}

  void repr(const Value& value) {
    runtime_.charge(1);
    switch (value.kind()) {
      case Kind::missing:
        break;
      case Kind::undefined:
        add("Undefined");
        break;
      case Kind::none:
        add("None");
        break;
      case Kind::boolean:
        add(value.as_integer() != 0 ? "True" : "False");
        break;
      case Kind::integer:
        add(fmt::format_int(value.as_integer()).c_str());
        break;
      case Kind::real:
        add(real_text(value.as_real()));
        break;
      case Kind::string:
        if (value.as<Text>().markup) add("Markup(");
        add_quoted(value.text());
        if (value.as<Text>().markup) add(")");
        break;
      case Kind::list:
        sequence("[", value.as<Items>().values, "]");
        break;
      case Kind::tuple:
        sequence("(", value.as<Items>().values, value.as<Items>().values.size() == 1 ? ",)" : ")");
        break;
      case Kind::dict:
        dict(value.as<Dict>());
        break;
      case Kind::range:
        range(value.as<RangeObject>());
        break;
      case Kind::view:
        view(value);
        break;
      case Kind::space:
        space(value.as<Space>());
        break;
      case Kind::loop:
        add(fmt::format("<LoopContext {}/{}>", value.as<LoopObject>().index0 + 1,
                        loop_length(runtime_, value)));
        break;
      case Kind::function:
        function(value.as<Function>());
        break;
      default:
        add(fmt::format("<{} object>", type_name(value)));
        break;
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void add(std::string_view text) {
    runtime_.check_string(static_cast<int64_t>(out_.size() + text.size()));
    runtime_.charge_copy(text);
    out_ += text;
  }

  void add_quoted(std::string_view text) {
    runtime_.charge_scan(text);
    add(quote(text));
  }

  void sequence(std::string_view open, const std::vector<Value>& values, std::string_view close) {
    add(open);
    for (size_t i = 0; i < values.size(); ++i) {
      if (i != 0) add(", ");
      repr(values[i]);
    }
    add(close);
  }

  void dict(const Dict& dict) {
    add("{");
    for (size_t i = 0; i < dict.entries.size(); ++i) {
      if (i != 0) add(", ");
      repr(dict.entries[i].first);
      add(": ");
      repr(dict.entries[i].second);
    }
    add("}");
  }

  void range(const RangeObject& range) {
    add(fmt::format("range({}, {}", range.start, range.stop));
    add(range.step == 1 ? ")" : fmt::format(", {})", range.step));
  }

  void view(const Value& value) {
    add(fmt::format("{}(", type_name(value)));
    const auto& entries = value.as<View>().dict.as<Dict>().entries;
    add("[");
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i != 0) add(", ");
      const auto what = value.as<View>().what;
      if (what == View::What::items) add("(");
      if (what != View::What::values) repr(entries[i].first);
      if (what == View::What::items) add(", ");
      if (what != View::What::keys) repr(entries[i].second);
      if (what == View::What::items) add(")");
    }
    add("])");
  }

  void space(const Space& space) {
    DepthGuard guard(runtime_);
    add("<Namespace {");
    for (size_t i = 0; i < space.attributes.size(); ++i) {
      if (i != 0) add(", ");
      add_quoted(space.attributes[i].first);
      add(": ");
      repr(space.attributes[i].second);
    }
    add("}>");
  }

  void function(const Function& function) {
    const std::string_view type = function.type_name;
    if (type == "Macro") {
      add(function.name.empty() ? "<Macro anonymous>" : fmt::format("<Macro {}>", quote(function.name)));
    } else if (type == "type") {
      add(fmt::format("<class '{}'>", function.name));
    } else if (function.self.is_missing()) {
      add(fmt::format("<function {}>", function.name));
    } else {
      add(fmt::format("<built-in method {} of {} object>", function.name, type_name(function.self)));
    }
  }

  Runtime& runtime_;
  std::string out_;
};

std::vector<Value> view_elements(Runtime& runtime, const View& view) {
  std::vector<Value> out;
  for (const auto& [key, value] : view.dict.as<Dict>().entries) {
    switch (view.what) {
      case View::What::keys:
        out.push_back(key);
        break;
      case View::What::values:
        out.push_back(value);
        break;
      case View::What::items:
        out.push_back(make_tuple(runtime, {key, value}));
        break;
    }
  }
  return out;
}

std::vector<Value> characters(Runtime& runtime, const Value& value) {
  const std::string_view text = value.text();
  std::vector<Value> out;
  for (size_t offset = 0; offset < text.size();) {
    const size_t begin = offset;
    next_code_point(text, offset);
    out.push_back(make_string(runtime, std::string(text.substr(begin, offset - begin))));
  }
  return out;
}

}  // namespace

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
      return "missing";
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::string:
      return value.as<Text>().markup ? "Markup" : "str";
    case Kind::list:
      return "list";
    case Kind::tuple:
      return value.as<Items>().group ? "_GroupTuple" : "tuple";
    case Kind::dict:
      return "dict";
    case Kind::range:
      return "range";
    case Kind::view:
      switch (value.as<View>().what) {
        case View::What::keys:
          return "dict_keys";
        case View::What::values:
          return "dict_values";
        case View::What::items:
          return "dict_items";
      }
      return "";
    case Kind::iterator:
      return value.as<Iterator>().type_name;
    case Kind::space:
      return "Namespace";
    case Kind::function:
      return value.as<Function>().type_name;
    case Kind::loop:
      return "LoopContext";
    case Kind::cycler:
      return "Cycler";
    case Kind::joiner:
      return "Joiner";
  }
  return "";
}

std::string to_repr(Runtime& runtime, const Value& value) {
  Printer printer(runtime);
  printer.repr(value);
  return printer.take();
}

std::string to_text(Runtime& runtime, const Value& value) {
  if (value.is_string()) return std::string(value.text());
  if (value.is_undefined()) return "";
  return to_repr(runtime, value);
}

Value to_string(Runtime& runtime, const Value& value) {
  if (value.is_string() && !value.as<Text>().markup) return value;
  return make_string(runtime, to_text(runtime, value));
}

bool is_iterable(const Value& value) {
  return has_length(value) || value.is(Kind::iterator);
}

std::vector<Value> elements(Runtime& runtime, const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return {};
    case Kind::string:
      return characters(runtime, value);
    case Kind::list:
    case Kind::tuple:
      runtime.charge(1 + static_cast<int64_t>(value.as<Items>().values.size()) / 2);
      return value.as<Items>().values;
    case Kind::dict: {
      std::vector<Value> out;
      for (const auto& [key, item] : value.as<Dict>().entries) out.push_back(key);
      runtime.charge(static_cast<int64_t>(out.size()));
      return out;
    }
    case Kind::range: {
      const auto& range = value.as<RangeObject>();
      const int64_t count = range.size();
      runtime.charge(count);
      std::vector<Value> out;
      for (int64_t i = 0; i < count; ++i) out.push_back(Value::integer(range.start + i * range.step));
      return out;
    }
    case Kind::view:
      runtime.charge(length(runtime, value));
      return view_elements(runtime, value.as<View>());
    case Kind::iterator: {
      std::vector<Value> out;
      ElementSource source(runtime, value);
      Value next;
      while (source.next(runtime, next)) out.push_back(next);
      return out;
    }
    case Kind::loop:
      fail_unsupported("iterating over the loop variable is not supported");
    default:
      fail_type(fmt::format("'{}' object is not iterable", type_name(value)));
  }
}

void fail_undefined(const Value& undefined) {
  const auto& object = undefined.as<UndefinedObject>();
  if (object.unsafe) fail("SecurityError", object.hint);
  if (!object.hint.empty()) fail("UndefinedError", object.hint);
  const std::string name = object.name.is_string() ? quote(object.name.text()) : std::string();
  if (object.owner_type.empty()) fail("UndefinedError", fmt::format("{} is undefined", name));
  if (!name.empty()) {
    fail("UndefinedError", fmt::format("{} has no attribute {}", quote(object.owner_type), name));
  }
  Runtime runtime;
  runtime.steps_left = 10'000;
  runtime.max_string_bytes = 10'000;
  runtime.max_depth = kMaxValueDepth;
  fail("UndefinedError",
       fmt::format("{} has no element {}", object.owner_type, to_repr(runtime, object.name)));
}

}  // namespace tenon::jinja
