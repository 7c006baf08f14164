// The values of a template: Python's None, bool, int, float, str, list, tuple and dict, and the objects
// jinja2 adds. A value is cheap to copy. Strings and containers never change once made (the sandbox of jinja2
// forbids it); namespaces, iterators, loops, cyclers and joiners do. Depth is counted so that no walk over a
// value is deeper than kMaxValueDepth.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja_runtime.h"

namespace tenon::jinja {

enum class Kind : uint8_t {
  missing,    // no value at all: an unset variable or an argument not given; never seen by a template
  undefined,  // UndefinedObject
  none,
  boolean,
  integer,
  real,
  string,    // Text
  list,      // Items
  tuple,     // Items
  dict,      // Dict
  range,     // RangeObject
  view,      // View: the keys, values or items of a dict
  iterator,  // Iterator: what Python makes lazily; read once
  space,     // Space: a namespace()
  function,  // Function: a global, a method, a macro
  loop,      // LoopObject (jinja_loop.h)
  cycler,    // Cycler
  joiner,    // Joiner
};

inline constexpr int kMaxValueDepth = 100;

struct Text;

class Value {
 public:
  Value() : integer_(0) {}
  static Value none() { return Value(Kind::none); }
  static Value boolean(bool value) {
    Value out(Kind::boolean);
    out.integer_ = value;
    return out;
  }
  static Value integer(int64_t value) {
    Value out(Kind::integer);
    out.integer_ = value;
    return out;
  }
  static Value real(double value) {
    Value out(Kind::real);
    out.real_ = value;
    return out;
  }
  template <typename T>
  static Value object(Kind kind, std::shared_ptr<T> object, int depth = 0) {
    Value out(kind);
    out.depth_ = static_cast<uint16_t>(depth);
    out.object_ = std::move(object);
    return out;
  }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_missing() const { return kind_ == Kind::missing; }
  bool is_undefined() const { return kind_ == Kind::undefined; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_integral() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }  // Python's int
  bool is_number() const { return is_integral() || kind_ == Kind::real; }
  bool is_sequence() const { return kind_ == Kind::list || kind_ == Kind::tuple; }

  int64_t as_integer() const { return integer_; }  // also of a boolean
  double as_real() const { return kind_ == Kind::real ? real_ : static_cast<double>(integer_); }
  std::string_view text() const;  // of a string
  template <typename T>
  T& as() const {
    return *static_cast<T*>(object_.get());
  }
  template <typename T>
  std::shared_ptr<T> shared() const {
    return std::static_pointer_cast<T>(object_);
  }
  const void* identity() const { return object_.get(); }
  int depth() const { return depth_; }

 private:
  explicit Value(Kind kind) : kind_(kind), integer_(0) {}

  Kind kind_ = Kind::missing;
  uint16_t depth_ = 0;
  union {
    int64_t integer_;
    double real_;
  };
  std::shared_ptr<void> object_;
};

struct Text {
  std::string bytes;
  bool ascii = true;
  bool markup = false;  // a markupsafe string: + escapes what is added to it
};

inline std::string_view Value::text() const {
  return as<Text>().bytes;
}

struct Items {
  std::vector<Value> values;
  bool group = false;  // a tuple of groupby, with the names grouper and list
};

struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  std::unordered_multimap<size_t, uint32_t>
      index;  // hash of the key -> entry, once there are more than a few
};

struct RangeObject {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  int64_t size() const;
};

struct View {
  enum class What { keys, values, items } what;
  Value dict;
};

struct Iterator {
  std::vector<Value> values;
  size_t next = 0;
  std::shared_ptr<Failure> failure;  // thrown when the values before it are used up
  const char* type_name = "generator";
};

struct Space {
  std::vector<std::pair<std::string, Value>> attributes;
};

struct Cycler {
  std::vector<Value> values;
  size_t next = 0;
};

struct Joiner {
  std::string separator;
  bool used = false;
};

struct UndefinedObject {
  std::string hint;        // the message, when it is not made from the rest
  std::string owner_type;  // the Python type whose attribute or element was asked for; empty for a variable
  Value name;
  bool unsafe = false;  // the sandbox refuses the attribute
};

struct CallArguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

class Evaluator;

// Something a template can call. `self` is what a method is bound to.
struct Function {
  std::string name;
  const char* type_name = "function";
  Value self;
  std::function<Value(Runtime&, const Value& self, CallArguments)> call;
  std::function<Value(Runtime&, std::string_view name)> attribute;  // may be empty
};

// Makers. They check the budget and throw Failure.
Value make_string(Runtime& runtime, std::string bytes, bool markup = false);
Value make_list(Runtime& runtime, std::vector<Value> values);
Value make_tuple(Runtime& runtime, std::vector<Value> values, bool group = false);
Value make_iterator(Runtime& runtime, std::vector<Value> values, const char* type_name = "generator",
                    std::shared_ptr<Failure> failure = nullptr);
Value make_view(Runtime& runtime, View::What what, const Value& dict);
Value make_range(int64_t start, int64_t stop, int64_t step);
Value make_function(std::string name, const char* type_name, const Value& self,
                    std::function<Value(Runtime&, const Value&, CallArguments)> call);
Value make_undefined(std::string hint);
Value undefined_variable(std::string_view name);
Value undefined_member(const Value& owner, const Value& name);
Value unsafe_member(const Value& owner, std::string_view name);
int nested_depth(const std::vector<Value>& values);  // of a container that holds them; refuses too much

// A dict is built with these and not changed afterwards. set() keeps the first place of a key.
class DictBuilder {
 public:
  explicit DictBuilder(Runtime& runtime) : runtime_(runtime), dict_(std::make_shared<Dict>()) {}
  bool set(const Value& key, Value value);  // true when the key is new
  Value finish();

 private:
  Runtime& runtime_;
  std::shared_ptr<Dict> dict_;
};

// The value of a key, or nullptr. The string form never throws.
const Value* find(Runtime& runtime, const Value& dict, const Value& key);
const Value* find(const Value& dict, std::string_view key);

bool truth(const Value& value);
bool equal(Runtime& runtime, const Value& a, const Value& b);
bool same_object(const Value& a, const Value& b);      // Python's `is`
size_t hash_of(Runtime& runtime, const Value& value);  // TypeError when unhashable
int compare(Runtime& runtime, const Value& a, const Value& b,
            std::string_view op);                      // <0, 0, >0; 2: unordered
int64_t length(Runtime& runtime, const Value& value);  // len(); TypeError
bool has_length(const Value& value);

std::string_view type_name(const Value& value);             // type(x).__name__
std::string to_text(Runtime& runtime, const Value& value);  // str(x)
std::string to_repr(Runtime& runtime, const Value& value);  // repr(x)
Value to_string(Runtime& runtime, const Value& value);      // a plain string, without a copy where it can be

// The elements, as iter() gives them; an iterator is used up. TypeError when not iterable.
std::vector<Value> elements(Runtime& runtime, const Value& value);
bool is_iterable(const Value& value);

[[noreturn]] void fail_undefined(const Value& undefined);  // the UndefinedError (or SecurityError) of it

}  // namespace tenon::jinja
