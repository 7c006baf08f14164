// A folder for the files of one test program, since several run beside each other.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace tenon {

// Below testing::TempDir(); of this process alone, and removed when it ends.
inline const std::string& scratch_folder() {
  struct Folder {
    pid_t owner = ::getpid();
    std::string path = testing::TempDir() + "/tenon_test_" + std::to_string(owner);

    Folder() { std::filesystem::create_directories(path); }
    ~Folder() {
      std::error_code ignored;
      if (::getpid() == owner) std::filesystem::remove_all(path, ignored);  // not from a forked child
    }
  };
  static const Folder folder;
  return folder.path;
}

}  // namespace tenon
