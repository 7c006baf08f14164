// Writing files so that a reader sees the old content or the new, never a part: bytes go to a temporary file
// beside the target, which is synced and renamed over it, and then the folder is synced. Also whole-file
// reading, and appending for logs. Every write passes io/write_points.h. Not thread-safe per object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tenon {

// Errors of everything here carry the path as subject: io (disk full, read-only, device error), not_found
// (the folder is missing), bad_argument (the path is a folder).

// A file being written. Nothing appears at `path` before commit(), which replaces a file or link there;
// without commit() the temporary file is removed. After an error the writer only accepts destruction.
class FileWriter {
 public:
  static Result<FileWriter> create(const std::string& path);

  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&& other) noexcept;
  ~FileWriter();

  Status append(std::span<const std::byte> bytes);
  Status append(std::string_view text) { return append(std::as_bytes(std::span(text))); }
  int64_t size_bytes() const { return size_bytes_; }  // appended so far
  const std::string& path() const { return path_; }

  // Syncs, renames over `path`, syncs the folder. At most once.
  Status commit();

 private:
  FileWriter() = default;
  Status flush();
  Status write_out(std::span<const std::byte> bytes);
  void discard();

  std::string path_;
  std::string temporary_;
  std::vector<std::byte> buffer_;
  int64_t size_bytes_ = 0;
  int fd_ = -1;
};

Status write_file_atomic(const std::string& path, std::span<const std::byte> bytes);
inline Status write_file_atomic(const std::string& path, std::string_view text) {
  return write_file_atomic(path, std::as_bytes(std::span(text)));
}

// The whole file. A file of more than `max_bytes` is bad_file.
Result<std::string> read_file(const std::string& path, int64_t max_bytes = int64_t{1} << 30);

// A log that only grows. append() hands one record to the system in one write where the system takes it
// whole; a crash can leave a part of the last record only. sync() makes what was appended survive a power
// cut.
class AppendFile {
 public:
  static Result<AppendFile> open(const std::string& path);  // made if missing

  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();

  Status append(std::string_view record);
  Status sync();

 private:
  AppendFile() = default;

  std::string path_;
  int fd_ = -1;
};

}  // namespace tenon
