// What one evaluation of a template may use, and how it stops: Failure is thrown inside the jinja_* files
// only and becomes an Error in chat_template.cc. Nothing outside these files sees it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tenon::jinja {

// Where in the template: counted from 1; the column counts code points.
struct Position {
  int32_t line = 1;
  int32_t column = 1;
};

struct Failure {
  ErrorCode code = ErrorCode::bad_argument;
  std::string kind;  // the Python exception of the same meaning: TypeError, UndefinedError, ...
  std::string message;
  std::optional<Position> at;
};

[[noreturn]] void fail(std::string_view kind, std::string message);
[[noreturn]] void fail_type(std::string message);   // TypeError
[[noreturn]] void fail_value(std::string message);  // ValueError
[[noreturn]] void fail_unsupported(std::string message);
[[noreturn]] void fail_budget(std::string message);
[[noreturn]] void fail_syntax(std::string message, Position at);
[[noreturn]] void fail_overflow();  // an integer past 64 bits

struct Space;
struct LoopObject;

// The budget of a render. charge() counts work, about 50 ns a step; every loop over elements or bytes of a
// value pays.
struct Runtime {
  int64_t steps_left = 0;
  int64_t max_string_bytes = 0;
  int64_t max_depth = 0;
  int64_t depth = 0;
  std::optional<int64_t> clock_unix_seconds;
  int64_t utc_offset_seconds = 0;
  // Values that can come to hold themselves; the evaluator takes them apart at the end.
  std::vector<std::shared_ptr<Space>> spaces;
  std::vector<std::shared_ptr<LoopObject>> loops;

  void charge(int64_t steps) {
    steps_left -= steps;
    if (steps_left < 0) [[unlikely]]
      out_of_steps();
  }
  // For text that is copied or searched at the speed of memory.
  void charge_copy(std::string_view text) { charge(1 + static_cast<int64_t>(text.size()) / 16); }
  // For text that is looked at one code point at a time.
  void charge_scan(std::string_view text) { charge(1 + static_cast<int64_t>(text.size()) / 2); }
  // Refuses a string that would be longer than the budget, before it is made.
  void check_string(int64_t bytes);
  [[noreturn]] void out_of_steps();
  [[noreturn]] void too_deep();
};

// Counts nested evaluations; the C++ stack is bounded by max_depth.
class DepthGuard {
 public:
  explicit DepthGuard(Runtime& runtime) : runtime_(runtime) {
    if (++runtime_.depth > runtime_.max_depth) {
      --runtime_.depth;
      runtime_.too_deep();
    }
  }
  ~DepthGuard() { --runtime_.depth; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  Runtime& runtime_;
};

}  // namespace tenon::jinja
