// A file mapped for reading. Owns the mapping, never writes. Copying nothing is the point: a tensor's bytes
// are a span into it. If another process cuts the file short while it is mapped, touching the lost pages
// kills this process (SIGBUS), so files are replaced by rename (io/write_file.h), never rewritten in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace tenon {

enum class MapAdvice { normal, sequential, random, will_need };

class MappedFile {
 public:
  // Errors: not_found (no such file), bad_argument (a folder or device), io. The subject is the path.
  static Result<MappedFile> open(const std::string& path, MapAdvice advice = MapAdvice::normal);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Stays at the same address when the object is moved. Page-aligned; empty for an empty file.
  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

  // A hint about the part [offset, offset + size), which is clipped to the file. Has no effect on results.
  void advise(MapAdvice advice, int64_t offset_bytes, int64_t size_bytes) const;

 private:
  MappedFile() = default;

  std::span<const std::byte> bytes_;
  std::string path_;
};

}  // namespace tenon
