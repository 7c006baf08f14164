// The `loop` variable of a for block, and the reading of elements one by one as Python's iterators do it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "text/jinja_value.h"

namespace tenon::jinja {

// Reads an iterable. Shares an iterator's place with everyone else who reads it.
class ElementSource {
 public:
  ElementSource(Runtime& runtime, const Value& iterable);  // TypeError when not iterable
  bool next(Runtime& runtime, Value& out);

 private:
  Value iterable_;
  std::vector<Value> values_;  // when the elements had to be made
  size_t next_ = 0;
};

struct LoopObject {
  Value iterable;  // for len(); missing when a filter makes the length unknown
  std::function<bool(Runtime&, Value&)> pull;
  std::function<Value(Runtime&, const Value& iterable, int64_t depth)> recurse;  // of a recursive loop
  std::vector<Value> pending;  // pulled early to know the length
  size_t pending_next = 0;
  int64_t index0 = -1;
  int64_t length = -1;
  int64_t depth0 = 0;
  Value after;  // peeked
  Value current;
  Value before;
  Value last_changed;
};

// Moves to the next element; false at the end.
bool loop_advance(Runtime& runtime, LoopObject& loop, Value& out);
int64_t loop_length(Runtime& runtime, const Value& loop);
// missing when there is no such attribute.
Value loop_attribute(Runtime& runtime, const Value& loop, std::string_view name);
// loop(iterable): the text of the loop over it.
Value loop_call(Runtime& runtime, const Value& loop, const CallArguments& arguments);

}  // namespace tenon::jinja
