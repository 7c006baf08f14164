// A JSON value: what the program writes and reads as JSON passes through it. The library that parses and
// prints (nlohmann/json) stays in json.cc: its headers cost every file that includes them seconds of
// compiling.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon {

// Thrown where a value is not of the kind that was asked for, a key is missing or a text is not JSON. Readers
// of files check first, or catch it and return an error value.
class JsonError : public std::exception {
 public:
  explicit JsonError(std::string message, size_t byte = 0) : message_(std::move(message)), byte_(byte) {}
  const char* what() const noexcept override { return message_.c_str(); }
  // Of a text that is not JSON: the place of the fault, counted from 1.
  size_t byte() const { return byte_; }

 private:
  std::string message_;
  size_t byte_;
};

class Json;

// Vectors, sets, arrays and spans; maps from strings.
template <typename T>
concept JsonList =
    !std::same_as<T, Json> && !std::convertible_to<T, std::string_view> && requires(const T& list) {
  typename T::value_type;
  list.begin() != list.end();
};
template <typename T>
concept JsonMap = JsonList<T> && requires {
  typename T::mapped_type;
};

class Json {
 public:
  enum class Kind : uint8_t { null, boolean, integer, natural, real, string, array, object };
  struct Member;  // {key, value}; the elements of an array have no key
  template <typename Element, typename Value>
  class Iterator;
  using iterator = Iterator<Member, Json>;
  using const_iterator = Iterator<const Member, const Json>;

  Json() noexcept;
  Json(std::nullptr_t) noexcept : Json() {}
  Json(std::string value);
  Json(std::string_view value) : Json(std::string(value)) {}
  Json(const char* value) : Json(std::string(value)) {}
  template <std::same_as<bool> T>
  Json(T value);
  template <std::signed_integral T>
  Json(T value);
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Json(T value);
  template <std::floating_point T>
  Json(T value);
  template <JsonList T>
  Json(const T& list) : Json(array()) {
    for (const auto& element : list) push_back(element);
  }
  template <JsonMap T>
  Json(const T& members) : Json(object()) {
    for (const auto& [key, value] : members) (*this)[key] = value;
  }
  // An object where every element is a list of a string and a value, else an array.
  Json(std::initializer_list<Json> list);

  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  static Json array();
  static Json array(std::initializer_list<Json> list);
  static Json object();

  // Throws JsonError with the place. Keys keep their order; of a key that comes twice the last value counts.
  static Json parse(std::string_view text);
  // The same, null where the text is not JSON.
  static Json parse_or_null(std::string_view text);
  // indent < 0: all in one line. Bytes that are not UTF-8 come out as U+FFFD.
  std::string dump(int indent = -1) const;

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  const char* type_name() const;  // in JSON's terms
  bool is_null() const { return kind() == Kind::null; }
  bool is_boolean() const { return kind() == Kind::boolean; }
  bool is_number_integer() const { return kind() == Kind::integer || kind() == Kind::natural; }
  bool is_number_float() const { return kind() == Kind::real; }
  bool is_number() const { return is_number_integer() || is_number_float(); }
  bool is_string() const { return kind() == Kind::string; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_object() const { return kind() == Kind::object; }
  bool is_structured() const { return is_array() || is_object(); }

  // bool, the integers of 32 and 64 bits, double, float, std::string, and vectors and maps from strings of
  // those; integers are cut to the width asked for.
  template <typename T>
  T get() const;
  template <typename T>
  void get_to(T& out) const {
    out = get<T>();
  }
  const std::string& text() const;  // of a string
  std::string& text();

  // Of null 0, of an array or object the elements, else 1.
  size_t size() const;
  bool empty() const { return size() == 0; }
  void clear();

  // Elements of an array, which must exist.
  const Json& at(size_t index) const;
  Json& at(size_t index);
  template <std::integral T>
  const Json& operator[](T index) const {
    return at(static_cast<size_t>(index));
  }
  template <std::integral T>
  Json& operator[](T index) {
    return at(static_cast<size_t>(index));
  }
  const Json& front() const { return at(size_t{0}); }
  const Json& back() const { return at(size() - 1); }
  Json& front() { return at(size_t{0}); }
  Json& back() { return at(size() - 1); }
  // Of an array, or of null, which becomes one.
  void push_back(Json element);
  template <typename T>
  void emplace_back(T&& element) {
    push_back(Json(std::forward<T>(element)));
  }
  void insert_front(Json element);
  void erase(size_t index);

  // Members of an object. A search walks over the members: objects here are small.
  const Json& at(std::string_view key) const;
  Json& at(std::string_view key);
  const Json& operator[](std::string_view key) const { return at(key); }
  Json& operator[](std::string_view key);  // made where it is missing; null becomes an object
  bool contains(std::string_view key) const;
  const_iterator find(std::string_view key) const;
  iterator find(std::string_view key);
  size_t erase(std::string_view key);  // how many were erased
  void update(const Json& other);      // takes over the members of an object
  template <typename T>
  T value(std::string_view key, T missing) const;
  std::string value(std::string_view key, const char* missing) const;

  // Of an array or object; empty for other kinds.
  const std::vector<Member>& items() const;
  const_iterator begin() const;
  const_iterator end() const;
  iterator begin();
  iterator end();

  // Numbers are equal by value, objects member by member in whatever order.
  bool operator==(const Json& other) const;

 private:
  friend class JsonBuilder;
  using Members = std::vector<Member>;
  struct Object {
    Members members;
  };
  Members& members();

  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Members, Object> value_;
};

struct Json::Member {
  std::string key;
  Json value;
};

// Defined where the variant's types are complete.
template <std::same_as<bool> T>
Json::Json(T value) : value_(value) {}
template <std::signed_integral T>
Json::Json(T value) : value_(static_cast<int64_t>(value)) {}
template <std::unsigned_integral T>
requires(!std::same_as<T, bool>) Json::Json(T value) : value_(static_cast<uint64_t>(value)) {}
template <std::floating_point T>
Json::Json(T value) : value_(static_cast<double>(value)) {}

template <typename Element, typename Value>
class Json::Iterator {
 public:
  using value_type = Json;
  using difference_type = std::ptrdiff_t;
  Iterator() = default;
  explicit Iterator(Element* at) : at_(at) {}
  Value& operator*() const { return at_->value; }
  Value* operator->() const { return &at_->value; }
  const std::string& key() const { return at_->key; }
  Iterator& operator++() {
    ++at_;
    return *this;
  }
  Iterator operator++(int) { return Iterator(at_++); }
  Iterator operator+(std::ptrdiff_t elements) const { return Iterator(at_ + elements); }
  std::ptrdiff_t operator-(const Iterator& other) const { return at_ - other.at_; }
  bool operator==(const Iterator&) const = default;

 private:
  Element* at_ = nullptr;
};

inline Json::const_iterator Json::begin() const {
  return const_iterator(items().data());
}
inline Json::const_iterator Json::end() const {
  return const_iterator(items().data() + items().size());
}

template <typename T>
T Json::value(std::string_view key, T missing) const {
  const const_iterator found = find(key);
  return found == end() ? missing : found->get<T>();
}

std::ostream& operator<<(std::ostream& out, const Json& json);

}  // namespace tenon
