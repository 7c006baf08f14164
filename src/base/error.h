// Errors that a person can act on, as values. Result<T> is a T or an Error; Status is a Result without a
// value. Nothing here throws or logs; whoever can answer the error prints it once, at the edge (cli).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace tenon {

// The closed set of kinds. The kind decides the exit code (cli/exit_code.h) and nothing else.
enum class ErrorCode { bad_argument, bad_file, not_found, unsupported, over_budget, io, device, cancelled };

std::string_view error_code_name(ErrorCode code);

// What went wrong, where, and what to do.
struct Error {
  ErrorCode code = ErrorCode::bad_argument;
  std::string message;  // what is wrong, one sentence without a full stop
  std::string subject;  // where: a file, tensor, option or line; may be empty
  std::string hint;     // what to do; may be empty

  // "SUBJECT: MESSAGE\n  HINT", leaving out what is empty.
  std::string text() const;

  // The same error with `outer` put before the subject ("outer: subject").
  Error within(std::string_view outer) &&;
};

Error bad_argument(std::string message, std::string subject = {}, std::string hint = {});
Error bad_file(std::string message, std::string subject = {}, std::string hint = {});
Error not_found(std::string message, std::string subject = {}, std::string hint = {});
Error unsupported(std::string message, std::string subject = {}, std::string hint = {});
Error over_budget(std::string message, std::string subject = {}, std::string hint = {});
Error io_error(std::string message, std::string subject = {}, std::string hint = {});
Error device_error(std::string message, std::string subject = {}, std::string hint = {});
Error cancelled(std::string message, std::string subject = {}, std::string hint = {});

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    CHECK(ok(), error_text());
    return std::get<0>(state_);
  }
  const T& value() const& {
    CHECK(ok(), error_text());
    return std::get<0>(state_);
  }
  // By value, so that what is taken from a temporary Result outlives it.
  T value() && {
    CHECK(ok(), error_text());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::string error_text() const { return ok() ? std::string() : error().text(); }

  std::variant<T, Error> state_;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)), ok_(false) {}

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const& { return error_; }
  Error&& error() && { return std::move(error_); }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace tenon

#define TENON_CONCAT_INNER(a, b) a##b
#define TENON_CONCAT(a, b) TENON_CONCAT_INNER(a, b)

// RETURN_IF_ERROR(expr): leaves the function with the error of a Status or Result, if it has one.
#define RETURN_IF_ERROR(expr)                                         \
  do {                                                                \
    auto tenon_status_ = (expr);                                      \
    if (!tenon_status_.ok()) return std::move(tenon_status_).error(); \
  } while (false)

// ASSIGN_OR_RETURN(auto x, expr): declares x from a Result, or leaves the function with its error.
#define ASSIGN_OR_RETURN(declaration, expr) \
  ASSIGN_OR_RETURN_INNER(TENON_CONCAT(tenon_result_, __LINE__), declaration, expr)
#define ASSIGN_OR_RETURN_INNER(result, declaration, expr) \
  auto result = (expr);                                   \
  if (!result.ok()) return std::move(result).error();     \
  declaration = std::move(result).value()
