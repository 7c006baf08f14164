#include "io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "io/describe.h"

namespace tenon {
namespace {

int advice_flag(MapAdvice advice) {
  switch (advice) {
    case MapAdvice::normal:
      return MADV_NORMAL;
    case MapAdvice::sequential:
      return MADV_SEQUENTIAL;
    case MapAdvice::random:
      return MADV_RANDOM;
    case MapAdvice::will_need:
      return MADV_WILLNEED;
  }
  CHECK(false, "unknown advice");
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path, MapAdvice advice) {
  // O_NONBLOCK: opening a named pipe must not wait for its writer; it is refused below.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return system_error("open", errno, path);
  struct stat info {};
  int error = ::fstat(fd, &info) == 0 ? 0 : errno;
  if (error == 0 && S_ISDIR(info.st_mode)) error = EISDIR;
  const bool regular = S_ISREG(info.st_mode);
  void* address = nullptr;
  if (error == 0 && regular && info.st_size > 0) {
    address = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (address == MAP_FAILED) error = errno;
  }
  ::close(fd);
  if (error != 0) return system_error("map", error, path);
  if (!regular) return bad_argument("not a regular file", path, "Copy its content to a file on disk.");

  MappedFile file;
  file.path_ = path;
  file.bytes_ = {static_cast<const std::byte*>(address), static_cast<size_t>(info.st_size)};
  if (advice != MapAdvice::normal) file.advise(advice, 0, info.st_size);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(path_, other.path_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::advise(MapAdvice advice, int64_t offset_bytes, int64_t size_bytes) const {
  const auto total = static_cast<int64_t>(bytes_.size());
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  const int64_t begin = std::clamp<int64_t>(offset_bytes, 0, total) / page * page;
  const int64_t end =
      std::clamp<int64_t>(size_bytes > total - offset_bytes ? total : offset_bytes + size_bytes, 0, total);
  if (begin >= end) return;
  ::madvise(const_cast<std::byte*>(bytes_.data()) + begin, static_cast<size_t>(end - begin),
            advice_flag(advice));
}

}  // namespace tenon
