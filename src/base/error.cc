#include "base/error.h"

namespace tenon {
namespace {

Error make(ErrorCode code, std::string message, std::string subject, std::string hint) {
  return Error{code, std::move(message), std::move(subject), std::move(hint)};
}

}  // namespace

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::bad_argument:
      return "bad_argument";
    case ErrorCode::bad_file:
      return "bad_file";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::over_budget:
      return "over_budget";
    case ErrorCode::io:
      return "io";
    case ErrorCode::device:
      return "device";
    case ErrorCode::cancelled:
      return "cancelled";
  }
  CHECK(false, "unknown error code");
}

std::string Error::text() const {
  std::string out = subject.empty() ? message : subject + ": " + message;
  if (!hint.empty()) out += "\n  " + hint;
  return out;
}

Error Error::within(std::string_view outer) && {
  subject = subject.empty() ? std::string(outer) : std::string(outer) + ": " + subject;
  return std::move(*this);
}

Error bad_argument(std::string message, std::string subject, std::string hint) {
  return make(ErrorCode::bad_argument, std::move(message), std::move(subject), std::move(hint));
}
Error bad_file(std::string message, std::string subject, std::string hint) {
  return make(ErrorCode::bad_file, std::move(message), std::move(subject), std::move(hint));
}
Error not_found(std::string message, std::string subject, std::string hint) {
  return make(ErrorCode::not_found, std::move(message), std::move(subject), std::move(hint));
}
Error unsupported(std::string message, std::string subject, std::string hint) {
  return make(ErrorCode::unsupported, std::move(message), std::move(subject), std::move(hint));
}
Error over_budget(std::string message, std::string subject, std::string hint) {
  return make(ErrorCode::over_budget, std::move(message), std::move(subject), std::move(hint));
}
Error io_error(std::string message, std::string subject, std::string hint) {
  return make(ErrorCode::io, std::move(message), std::move(subject), std::move(hint));
}
Error device_error(std::string message, std::string subject, std::string hint) {
  return make(ErrorCode::device, std::move(message), std::move(subject), std::move(hint));
}
Error cancelled(std::string message, std::string subject, std::string hint) {
  return make(ErrorCode::cancelled, std::move(message), std::move(subject), std::move(hint));
}

}  // namespace tenon
