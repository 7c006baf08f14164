// The exit codes of the program, and which kind of error gives which.
#pragma once

#include "base/error.h"

namespace tenon {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;      // failed while running
inline constexpr int kExitBadInput = 2;    // wrong arguments or files
inline constexpr int kExitDoesNotFit = 3;  // more memory than the budget

inline int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::bad_argument:
    case ErrorCode::bad_file:
    case ErrorCode::not_found:
    case ErrorCode::unsupported:
      return kExitBadInput;
    case ErrorCode::over_budget:
      return kExitDoesNotFit;
    case ErrorCode::io:
    case ErrorCode::device:
    case ErrorCode::cancelled:
      return kExitFailed;
  }
  return kExitFailed;
}

}  // namespace tenon
