// A folder for the files of one test program, since several run beside each other.
#pragma once

#include "io/test_folder.h"

namespace tenon {

// Of this process alone, and removed when it ends.
inline const std::string& scratch_folder() {
  static const TestFolder folder;
  return folder.path();
}

}  // namespace tenon
