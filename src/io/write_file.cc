#include "io/write_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "io/describe.h"
#include "io/folder.h"
#include "io/partial_name.h"
#include "io/write_points.h"

namespace tenon {
namespace {

constexpr size_t kBufferBytes = 256 << 10;
constexpr int64_t kReadBytes = 1 << 20;

Status write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const int64_t written = write_points::write(fd, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_error("write", written < 0 ? errno : EIO, path);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace

Result<FileWriter> FileWriter::create(const std::string& path) {
  if (is_folder(path)) return system_error("write", EISDIR, path);
  FileWriter writer;
  writer.path_ = path;
  writer.temporary_ = partial_name(path);
  writer.fd_ = write_points::create(writer.temporary_.c_str(), O_WRONLY | O_EXCL);
  if (writer.fd_ < 0) return system_error("create", errno, path);
  writer.buffer_.reserve(kBufferBytes);
  return writer;
}

FileWriter::FileWriter(FileWriter&& other) noexcept {
  *this = std::move(other);
}

FileWriter& FileWriter::operator=(FileWriter&& other) noexcept {
  if (this == &other) return *this;
  discard();
  path_ = std::move(other.path_);
  temporary_ = std::exchange(other.temporary_, {});
  buffer_ = std::move(other.buffer_);
  size_bytes_ = other.size_bytes_;
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

FileWriter::~FileWriter() {
  discard();
}

void FileWriter::discard() {
  close_fd(fd_);
  if (!temporary_.empty()) write_points::remove(temporary_.c_str());
  temporary_.clear();
}

Status FileWriter::write_out(std::span<const std::byte> bytes) {
  Status status = write_all(fd_, bytes, path_);
  if (!status.ok()) discard();
  return status;
}

Status FileWriter::flush() {
  RETURN_IF_ERROR(write_out(buffer_));
  buffer_.clear();
  return {};
}

Status FileWriter::append(std::span<const std::byte> bytes) {
  CHECK(fd_ >= 0, "append to a file that failed or was committed");
  if (buffer_.size() + bytes.size() > kBufferBytes) RETURN_IF_ERROR(flush());
  if (bytes.size() >= kBufferBytes) {
    RETURN_IF_ERROR(write_out(bytes));
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  size_bytes_ += static_cast<int64_t>(bytes.size());
  return {};
}

Status FileWriter::commit() {
  CHECK(fd_ >= 0, "commit of a file that failed or was committed");
  RETURN_IF_ERROR(flush());
  if (write_points::sync(fd_) != 0) {
    const int error = errno;
    discard();
    return system_error("sync", error, path_);
  }
  close_fd(fd_);
  if (write_points::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    discard();
    return system_error("put in place", error, path_);
  }
  temporary_.clear();
  return sync_folder(parent_folder(path_));
}

Status write_file_atomic(const std::string& path, std::span<const std::byte> bytes) {
  ASSIGN_OR_RETURN(FileWriter writer, FileWriter::create(path));
  RETURN_IF_ERROR(writer.append(bytes));
  return writer.commit();
}

Result<std::string> read_file(const std::string& path, int64_t max_bytes) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error("read", errno, path);
  struct stat info {};
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  std::string content(static_cast<size_t>(std::min(regular ? info.st_size + 1 : kReadBytes, max_bytes + 1)),
                      '\0');
  int64_t size = 0;
  for (;;) {
    const auto room = static_cast<int64_t>(content.size()) - size;
    const int64_t got = room > 0 ? ::read(fd, content.data() + size, static_cast<size_t>(room)) : 0;
    if (got < 0 && errno == EINTR) continue;
    const int error = got < 0 ? errno : 0;
    size += std::max<int64_t>(got, 0);
    if (got > 0 && size <= max_bytes) {
      if (got == room) content.resize(static_cast<size_t>(std::min(size + kReadBytes, max_bytes + 1)));
      continue;
    }
    close_fd(fd);
    if (error != 0) return system_error("read", error, path);
    if (size > max_bytes) {
      return bad_file(fmt::format("the file has more than the {} allowed here", bytes_text(max_bytes)), path,
                      "Check that it is the right file.");
    }
    content.resize(static_cast<size_t>(size));
    return content;
  }
}

Result<AppendFile> AppendFile::open(const std::string& path) {
  AppendFile file;
  file.path_ = path;
  file.fd_ = write_points::create(path.c_str(), O_WRONLY | O_APPEND);
  if (file.fd_ < 0) return system_error("open for appending", errno, path);
  return file;
}

AppendFile::AppendFile(AppendFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

AppendFile& AppendFile::operator=(AppendFile&& other) noexcept {
  if (this == &other) return *this;
  close_fd(fd_);
  path_ = std::move(other.path_);
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

AppendFile::~AppendFile() {
  close_fd(fd_);
}

Status AppendFile::append(std::string_view record) {
  return write_all(fd_, std::as_bytes(std::span(record)), path_);
}

Status AppendFile::sync() {
  if (write_points::sync(fd_) != 0) return system_error("sync", errno, path_);
  return {};
}

}  // namespace tenon
