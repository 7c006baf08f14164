// Making values, and looking into them.
#include "text/jinja_value.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_loop.h"
#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

constexpr int64_t kContainerSteps = 3;  // what making a container costs besides its elements

constexpr size_t kIndexFrom = 12;  // a dict of fewer entries is searched entry by entry

int checked_depth(int depth) {
  if (depth > kMaxValueDepth)
    fail_budget(fmt::format("the template nests values more than {} deep", kMaxValueDepth));
  return depth;
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
  runtime.charge_copy(bytes);
  runtime.charge(1);
  const bool ascii = is_ascii(bytes);
  return Value::object(Kind::string, std::make_shared<Text>(Text{std::move(bytes), ascii, markup}));
}

Value make_list(Runtime& runtime, std::vector<Value> values) {
  runtime.charge(kContainerSteps + static_cast<int64_t>(values.size()) / 2);
  const int depth = nested_depth(values);
  return Value::object(Kind::list, std::make_shared<Items>(Items{std::move(values), false}), depth);
}

Value make_tuple(Runtime& runtime, std::vector<Value> values, bool group) {
  runtime.charge(kContainerSteps + static_cast<int64_t>(values.size()) / 2);
  const int depth = nested_depth(values);
  return Value::object(Kind::tuple, std::make_shared<Items>(Items{std::move(values), group}), depth);
}

Value make_iterator(Runtime& runtime, std::vector<Value> values, const char* type_name,
                    std::shared_ptr<Failure> failure) {
  runtime.charge(kContainerSteps + static_cast<int64_t>(values.size()) / 2);
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
      runtime.charge_copy(value.text());
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
