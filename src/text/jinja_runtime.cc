// The failures of a template and the limits of a render.
#include "text/jinja_runtime.h"

#include <fmt/format.h>

#include <utility>

namespace tenon::jinja {

void fail(std::string_view kind, std::string message) {
  throw Failure{ErrorCode::bad_argument, std::string(kind), std::move(message), std::nullopt};
}

void fail_type(std::string message) {
  fail("TypeError", std::move(message));
}
void fail_value(std::string message) {
  fail("ValueError", std::move(message));
}

void fail_unsupported(std::string message) {
  throw Failure{ErrorCode::unsupported, "Unsupported", std::move(message), std::nullopt};
}

void fail_budget(std::string message) {
  throw Failure{ErrorCode::over_budget, "Budget", std::move(message), std::nullopt};
}

void fail_syntax(std::string message, Position at) {
  throw Failure{ErrorCode::bad_file, "TemplateSyntaxError", std::move(message), at};
}

void fail_overflow() {
  fail_unsupported("an integer does not fit 64 bits");
}

void Runtime::check_string(int64_t bytes) {
  if (bytes > max_string_bytes) {
    fail_budget(fmt::format("the template makes a string of more than {} bytes", max_string_bytes));
  }
}

void Runtime::out_of_steps() {
  steps_left = 0;
  fail_budget("the template takes more steps than the budget allows");
}

void Runtime::too_deep() {
  fail_budget(fmt::format("the template nests more than {} evaluations", max_depth));
}

}  // namespace tenon::jinja
