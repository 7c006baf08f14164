#include "base/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <type_traits>
#include <unordered_map>

namespace tenon {
namespace {

using Members = std::vector<Json::Member>;

constexpr size_t kDeepest = 1000;  // nesting; copying, printing and destroying a value recurse

// Of keys that come twice the last value stays, in the first place.
void drop_repeated_keys(Members& members) {
  std::unordered_map<std::string_view, size_t> places;
  for (const Json::Member& member : members) places.emplace(member.key, places.size());
  if (places.size() == members.size()) return;
  Members kept;
  places.clear();
  kept.reserve(members.size());  // keys must not move: the map refers to them
  for (Json::Member& member : members) {
    const auto place = places.find(member.key);
    if (place != places.end()) {
      kept[place->second].value = std::move(member.value);
    } else {
      kept.push_back(std::move(member));
      places.emplace(kept.back().key, kept.size() - 1);
    }
  }
  members = std::move(kept);
}

}  // namespace

// Builds a value from the parser's events.
class JsonBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Json take() { return std::move(root_); }

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(int64_t value) override { return add(value); }
  bool number_unsigned(uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) override { return false; }  // JSON text has none
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool key(std::string& name) override {
    keys_.back() = std::move(name);
    return true;
  }
  bool end_object() override {
    drop_repeated_keys(open_.back().members());
    return end_array();
  }
  bool end_array() override {
    Json done = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    return add(std::move(done));
  }
  bool parse_error(size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    throw JsonError(error.what(), byte);
  }

 private:
  bool add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else {
      open_.back().members().push_back({std::move(keys_.back()), std::move(value)});
    }
    return true;
  }
  bool open(Json empty) {
    if (open_.size() == kDeepest) throw JsonError("nested too deep");
    open_.push_back(std::move(empty));
    keys_.emplace_back();
    return true;
  }

  Json root_;
  std::vector<Json> open_;         // the arrays and objects that the parser is in
  std::vector<std::string> keys_;  // of the next member of each; empty in arrays
};

namespace {

nlohmann::ordered_json to_library(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::null:
      return nullptr;
    case Json::Kind::boolean:
      return value.get<bool>();
    case Json::Kind::integer:
      return value.get<int64_t>();
    case Json::Kind::natural:
      return value.get<uint64_t>();
    case Json::Kind::real:
      return value.get<double>();
    case Json::Kind::string:
      return value.text();
    case Json::Kind::array: {
      nlohmann::ordered_json::array_t out;
      for (const Json& element : value) out.push_back(to_library(element));
      return out;
    }
    case Json::Kind::object: {
      nlohmann::ordered_json::object_t out;
      for (const auto& [key, member] : value.items()) out.emplace_back(key, to_library(member));
      return out;
    }
  }
  return nullptr;
}

[[noreturn]] void wrong_kind(const Json& value, std::string_view wanted) {
  throw JsonError("expected " + std::string(wanted) + ", found " + value.type_name());
}

template <typename T>
T number(const Json& value, const auto& stored) {
  if (const auto* integer = std::get_if<int64_t>(&stored)) return static_cast<T>(*integer);
  if (const auto* natural = std::get_if<uint64_t>(&stored)) return static_cast<T>(*natural);
  if (const auto* real = std::get_if<double>(&stored)) return static_cast<T>(*real);
  wrong_kind(value, "a number");
}

bool equal_numbers(const Json& a, const Json& b) {
  if (a.is_number_float() || b.is_number_float()) return a.get<double>() == b.get<double>();
  const bool negative = a.kind() == Json::Kind::integer && a.get<int64_t>() < 0;
  if (negative != (b.kind() == Json::Kind::integer && b.get<int64_t>() < 0)) return false;
  return a.get<uint64_t>() == b.get<uint64_t>();
}

}  // namespace

Json::Json() noexcept = default;
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(const Json&) = default;
Json::Json(Json&& other) noexcept : value_(std::exchange(other.value_, {})) {}
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&& other) noexcept {
  value_ = std::exchange(other.value_, {});
  return *this;
}
Json::~Json() = default;

Json::Json(std::initializer_list<Json> list) {
  const bool is_object = std::ranges::all_of(list, [](const Json& element) {
    return element.is_array() && element.size() == 2 && element[0].is_string();
  });
  if (!is_object) {
    *this = array(list);
    return;
  }
  *this = object();
  for (const Json& element : list) (*this)[element[0].text()] = element[1];
}

Json Json::array() {
  Json out;
  out.value_ = Members();
  return out;
}

Json Json::array(std::initializer_list<Json> list) {
  Json out = array();
  for (const Json& element : list) out.push_back(element);
  return out;
}

Json Json::object() {
  Json out;
  out.value_ = Object();
  return out;
}

Json Json::parse(std::string_view text) {
  JsonBuilder builder;
  nlohmann::json::sax_parse(text, &builder);
  return builder.take();
}

Json Json::parse_or_null(std::string_view text) {
  try {
    return parse(text);
  } catch (const JsonError&) {
    return nullptr;
  }
}

std::string Json::dump(int indent) const {
  return to_library(*this).dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

const char* Json::type_name() const {
  switch (kind()) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "boolean";
    case Kind::string:
      return "string";
    case Kind::array:
      return "array";
    case Kind::object:
      return "object";
    default:
      return "number";
  }
}

template <typename T>
T Json::get() const {
  if constexpr (std::is_same_v<T, bool>) {
    if (const bool* value = std::get_if<bool>(&value_)) return *value;
    wrong_kind(*this, "a boolean");
  } else if constexpr (std::is_arithmetic_v<T>) {
    return number<T>(*this, value_);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return text();
  } else {
    constexpr bool kList = std::is_same_v<T, std::vector<typename T::value_type>>;
    if (kList ? !is_array() : !is_object()) wrong_kind(*this, kList ? "an array" : "an object");
    T out;
    for (const Member& member : items()) {
      if constexpr (kList) {
        out.push_back(member.value.get<typename T::value_type>());
      } else {
        out.emplace(member.key, member.value.get<typename T::mapped_type>());
      }
    }
    return out;
  }
}

template bool Json::get() const;
template int32_t Json::get() const;
template uint32_t Json::get() const;
template int64_t Json::get() const;
template uint64_t Json::get() const;
template float Json::get() const;
template double Json::get() const;
template std::string Json::get() const;
template std::vector<int32_t> Json::get() const;
template std::vector<int64_t> Json::get() const;
template std::vector<float> Json::get() const;
template std::vector<double> Json::get() const;
template std::vector<std::string> Json::get() const;
template std::map<std::string, std::string> Json::get() const;

const std::string& Json::text() const {
  if (const std::string* value = std::get_if<std::string>(&value_)) return *value;
  wrong_kind(*this, "a string");
}

std::string& Json::text() {
  return const_cast<std::string&>(std::as_const(*this).text());
}

size_t Json::size() const {
  return is_structured() ? items().size() : is_null() ? 0 : 1;
}

void Json::clear() {
  *this = is_object() ? object() : is_array() ? array() : Json();
}

const Json& Json::at(size_t index) const {
  if (!is_array()) wrong_kind(*this, "an array");
  if (index >= items().size()) throw JsonError("no element " + std::to_string(index));
  return items()[index].value;
}

Json& Json::at(size_t index) {
  return const_cast<Json&>(std::as_const(*this).at(index));
}

void Json::push_back(Json element) {
  if (is_null()) *this = array();
  if (!is_array()) wrong_kind(*this, "an array");
  members().push_back({{}, std::move(element)});
}

void Json::insert_front(Json element) {
  if (!is_array()) wrong_kind(*this, "an array");
  members().insert(members().begin(), {{}, std::move(element)});
}

void Json::erase(size_t index) {
  at(index);
  members().erase(members().begin() + static_cast<std::ptrdiff_t>(index));
}

const Json& Json::at(std::string_view key) const {
  if (!is_object()) wrong_kind(*this, "an object");
  const const_iterator found = find(key);
  if (found == end()) throw JsonError("the key '" + std::string(key) + "' is missing");
  return *found;
}

Json& Json::at(std::string_view key) {
  return const_cast<Json&>(std::as_const(*this).at(key));
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) *this = object();
  if (!is_object()) wrong_kind(*this, "an object");
  const iterator found = find(key);
  if (found != end()) return *found;
  members().push_back({std::string(key), {}});
  return members().back().value;
}

bool Json::contains(std::string_view key) const {
  return find(key) != end();
}

Json::const_iterator Json::find(std::string_view key) const {
  if (!is_object()) return end();
  const Members& all = items();
  const auto found = std::ranges::find(all, key, &Member::key);
  return const_iterator(all.data() + (found - all.begin()));
}

Json::iterator Json::find(std::string_view key) {
  return begin() + (std::as_const(*this).find(key) - std::as_const(*this).begin());
}

size_t Json::erase(std::string_view key) {
  return is_object() ? std::erase_if(members(), [&](const Member& member) { return member.key == key; }) : 0;
}

void Json::update(const Json& other) {
  if (!other.is_object()) wrong_kind(other, "an object");
  for (const auto& [key, value] : other.items()) (*this)[key] = value;
}

std::string Json::value(std::string_view key, const char* missing) const {
  return value(key, std::string(missing));
}

const Json::Members& Json::items() const {
  static const Members kNone;
  if (const Members* elements = std::get_if<Members>(&value_)) return *elements;
  const Object* object = std::get_if<Object>(&value_);
  return object ? object->members : kNone;
}

Json::Members& Json::members() {
  return const_cast<Members&>(items());
}

Json::iterator Json::begin() {
  return iterator(is_structured() ? members().data() : nullptr);
}
Json::iterator Json::end() {
  return iterator(is_structured() ? members().data() + members().size() : nullptr);
}

bool Json::operator==(const Json& other) const {
  if (is_number() && other.is_number()) return equal_numbers(*this, other);
  if (kind() != other.kind() || size() != other.size()) return false;
  switch (kind()) {
    case Kind::null:
      return true;
    case Kind::boolean:
      return get<bool>() == other.get<bool>();
    case Kind::string:
      return text() == other.text();
    case Kind::array:
      return std::equal(begin(), end(), other.begin());
    default:
      return std::ranges::all_of(items(), [&](const Member& member) {
        const const_iterator same = other.find(member.key);
        return same != other.end() && *same == member.value;
      });
  }
}

std::ostream& operator<<(std::ostream& out, const Json& json) {
  return out << json.dump();
}

}  // namespace tenon
