// For tests: a fresh folder that is removed again.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "io/folder.h"
#include "io/write_file.h"

namespace tenon {

class TestFolder {
 public:
  explicit TestFolder(const std::string& parent = testing::TempDir()) : path_(parent + "tenon_XXXXXX") {
    if (!::mkdtemp(path_.data())) ADD_FAILURE() << "cannot make a folder under " << parent;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return join_path(path_, name); }
  void put(std::string_view name, std::string_view text) const {
    const Status status = write_file_atomic(*this / name, text);
    EXPECT_TRUE(status.ok()) << status.error().text();
  }

 private:
  std::string path_;
};

}  // namespace tenon
