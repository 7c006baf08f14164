#include "record/record_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

namespace tenon {
namespace {

Error failure(std::string_view what, const std::string& path) {
  const int code = errno;
  return io_error(fmt::format("{}: {}", what, std::strerror(code)), path,
                  code == ENOSPC || code == EDQUOT ? "Free some space, then resume the run." : "");
}

// The new name is safe once its folder is on the disk.
Status sync_folder(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return failure("cannot open the folder", folder);
  const bool synced = ::fsync(file) == 0 || errno == EINVAL;
  Status status = synced ? Status() : Status(failure("cannot sync the folder", folder));
  ::close(file);
  return status;
}

// The length up to and with the last newline.
Result<off_t> whole_lines(int file, const std::string& path) {
  struct stat info {};
  if (::fstat(file, &info) != 0) return failure("cannot read the run record", path);
  char block[4096];
  for (off_t end = info.st_size; end > 0;) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(sizeof block));
    const ssize_t count = ::pread(file, block, static_cast<size_t>(end - begin), begin);
    if (count != end - begin) return failure("cannot read the run record", path);
    const size_t newline = std::string_view(block, static_cast<size_t>(count)).rfind('\n');
    if (newline != std::string_view::npos) return begin + static_cast<off_t>(newline) + 1;
    end = begin;
  }
  return off_t{0};
}

}  // namespace

RecordWriter::RecordWriter(int file, std::string path, RecordSync sync)
    : file_(file), path_(std::move(path)), sync_(sync) {}

RecordWriter::RecordWriter(RecordWriter&& other) noexcept
    : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)), sync_(other.sync_) {}

RecordWriter& RecordWriter::operator=(RecordWriter&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  std::swap(sync_, other.sync_);
  return *this;
}

RecordWriter::~RecordWriter() {
  if (file_ >= 0) ::close(file_);
}

Result<RecordWriter> RecordWriter::create(const std::string& path, RecordSync sync) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return failure("cannot start the run record", path);
  RecordWriter writer(file, path, sync);
  RETURN_IF_ERROR(sync_folder(path));
  return writer;
}

Result<RecordWriter> RecordWriter::reopen(const std::string& path, RecordSync sync) {
  const int file = ::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (file < 0) return failure("cannot open the run record", path);
  RecordWriter writer(file, path, sync);
  ASSIGN_OR_RETURN(const off_t length, whole_lines(file, path));
  if (::ftruncate(file, length) != 0) return failure("cannot remove the cut last line", path);
  return writer;
}

Status RecordWriter::append(std::string line, bool sync) {
  CHECK(file_ >= 0, "a closed run record is written to");
  line += '\n';
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t count = ::write(file_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failure("cannot write the run record", path_);
    rest.remove_prefix(static_cast<size_t>(count));
  }
  if (sync && ::fdatasync(file_) != 0) return failure("cannot sync the run record", path_);
  return {};
}

Status RecordWriter::write(const RecordHeader& event) {
  return append(record_line(event), true);
}
Status RecordWriter::write(const RecordStep& event) {
  return append(record_line(event), sync_ == RecordSync::always);
}
Status RecordWriter::write(const RecordEval& event) {
  return append(record_line(event), sync_ == RecordSync::always);
}
Status RecordWriter::write(const RecordResume& event) {
  return append(record_line(event), true);
}
Status RecordWriter::write(const RecordEnd& event) {
  return append(record_line(event), true);
}

Status RecordWriter::close() {
  const int file = std::exchange(file_, -1);
  if (file >= 0 && ::close(file) != 0) return failure("cannot close the run record", path_);
  return {};
}

}  // namespace tenon
