// The state of a for block. Elements are pulled one at a time, since a filter or an iterator may depend on
// what the body did before.
#include "text/jinja_loop.h"

#include <utility>

namespace tenon::jinja {
namespace {

bool pull_one(Runtime& runtime, LoopObject& loop, Value& out) {
  if (loop.pending_next < loop.pending.size()) {
    out = loop.pending[loop.pending_next++];
    return true;
  }
  return loop.pull(runtime, out);
}

const Value& peek(Runtime& runtime, LoopObject& loop) {
  if (loop.after.is_missing()) {
    Value next;
    if (pull_one(runtime, loop, next)) loop.after = std::move(next);
  }
  return loop.after;
}

Value cycle(Runtime&, const Value& self, CallArguments arguments) {
  if (arguments.positional.empty()) fail_type("no items for cycling given");
  const auto index = static_cast<size_t>(self.as<LoopObject>().index0);
  return arguments.positional[index % arguments.positional.size()];
}

Value changed(Runtime& runtime, const Value& self, CallArguments arguments) {
  LoopObject& loop = self.as<LoopObject>();
  Value now = make_tuple(runtime, std::move(arguments.positional));
  if (!loop.last_changed.is_missing() && equal(runtime, loop.last_changed, now)) return Value::boolean(false);
  if (loop.last_changed.is_missing()) runtime.loops.push_back(self.shared<LoopObject>());
  loop.last_changed = std::move(now);
  return Value::boolean(true);
}

}  // namespace

ElementSource::ElementSource(Runtime& runtime, const Value& iterable) : iterable_(iterable) {
  if (!iterable.is_sequence() && !iterable.is(Kind::iterator)) values_ = elements(runtime, iterable);
}

bool ElementSource::next(Runtime& runtime, Value& out) {
  runtime.charge(1);
  if (iterable_.is(Kind::iterator)) {
    Iterator& iterator = iterable_.as<Iterator>();
    if (iterator.next < iterator.values.size()) {
      out = iterator.values[iterator.next++];
      return true;
    }
    if (auto failure = std::exchange(iterator.failure, nullptr)) throw Failure(*failure);
    return false;
  }
  const auto& values = iterable_.is_sequence() ? iterable_.as<Items>().values : values_;
  if (next_ >= values.size()) return false;
  out = values[next_++];
  return true;
}

bool loop_advance(Runtime& runtime, LoopObject& loop, Value& out) {
  if (!loop.after.is_missing()) {
    out = std::exchange(loop.after, Value());
  } else if (!pull_one(runtime, loop, out)) {
    return false;
  }
  ++loop.index0;
  loop.before = std::exchange(loop.current, out);
  return true;
}

int64_t loop_length(Runtime& runtime, const Value& value) {
  LoopObject& loop = value.as<LoopObject>();
  if (loop.length >= 0) return loop.length;
  if (!loop.iterable.is_missing() && has_length(loop.iterable)) {
    loop.length = length(runtime, loop.iterable);
    return loop.length;
  }
  Value next;
  while (loop.pull(runtime, next)) loop.pending.push_back(next);
  const auto left = static_cast<int64_t>(loop.pending.size() - loop.pending_next);
  loop.length = left + loop.index0 + 1 + (loop.after.is_missing() ? 0 : 1);
  return loop.length;
}

Value loop_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  LoopObject& loop = value.as<LoopObject>();
  if (name == "index") return Value::integer(loop.index0 + 1);
  if (name == "index0") return Value::integer(loop.index0);
  if (name == "first") return Value::boolean(loop.index0 == 0);
  if (name == "last") return Value::boolean(peek(runtime, loop).is_missing());
  if (name == "length") return Value::integer(loop_length(runtime, value));
  if (name == "revindex") return Value::integer(loop_length(runtime, value) - loop.index0);
  if (name == "revindex0") return Value::integer(loop_length(runtime, value) - loop.index0 - 1);
  if (name == "depth") return Value::integer(loop.depth0 + 1);
  if (name == "depth0") return Value::integer(loop.depth0);
  if (name == "previtem") return loop.index0 == 0 ? make_undefined("there is no previous item") : loop.before;
  if (name == "nextitem") {
    const Value& next = peek(runtime, loop);
    return next.is_missing() ? make_undefined("there is no next item") : next;
  }
  if (name == "cycle") return make_function("cycle", "method", value, cycle);
  if (name == "changed") return make_function("changed", "method", value, changed);
  return Value();
}

Value loop_call(Runtime& runtime, const Value& value, const CallArguments& arguments) {
  LoopObject& loop = value.as<LoopObject>();
  if (arguments.positional.size() != 1 || !arguments.keywords.empty()) {
    fail_type("loop() takes one iterable");
  }
  if (!loop.recurse) fail_type("The loop must have the 'recursive' marker to be called recursively.");
  return loop.recurse(runtime, arguments.positional[0], loop.depth0 + 1);
}

}  // namespace tenon::jinja
