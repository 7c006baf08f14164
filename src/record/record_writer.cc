#include "record/record_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <utility>

#include "io/describe.h"
#include "io/folder.h"
#include "io/write_points.h"

namespace tenon {
namespace {

// The length up to and with the last newline.
Result<int64_t> whole_lines(int file, const std::string& path) {
  struct stat info {};
  if (::fstat(file, &info) != 0) return system_error("read the run record", errno, path);
  char block[4096];
  for (off_t end = info.st_size; end > 0;) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(sizeof block));
    const ssize_t count = ::pread(file, block, static_cast<size_t>(end - begin), begin);
    if (count != end - begin) return system_error("read the run record", count < 0 ? errno : EIO, path);
    const size_t newline = std::string_view(block, static_cast<size_t>(count)).rfind('\n');
    if (newline != std::string_view::npos) return begin + static_cast<off_t>(newline) + 1;
    end = begin;
  }
  return int64_t{0};
}

}  // namespace

RecordWriter::RecordWriter(int file, std::string path, RecordSync sync)
    : file_(file), path_(std::move(path)), sync_(sync) {}

RecordWriter::RecordWriter(RecordWriter&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      path_(std::move(other.path_)),
      sync_(other.sync_),
      size_bytes_(other.size_bytes_),
      cut_(other.cut_) {}

RecordWriter& RecordWriter::operator=(RecordWriter&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  std::swap(sync_, other.sync_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(cut_, other.cut_);
  return *this;
}

RecordWriter::~RecordWriter() {
  if (file_ >= 0) ::close(file_);
}

Result<RecordWriter> RecordWriter::create(const std::string& path, RecordSync sync) {
  const int file = write_points::create(path.c_str(), O_WRONLY | O_APPEND | O_EXCL);
  if (file < 0) return system_error("start the run record", errno, path);
  RecordWriter writer(file, path, sync);
  RETURN_IF_ERROR(sync_folder(parent_folder(path)));
  return writer;
}

Result<RecordWriter> RecordWriter::reopen(const std::string& path, RecordSync sync) {
  const int file = ::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
  if (file < 0) return system_error("open the run record", errno, path);
  RecordWriter writer(file, path, sync);
  ASSIGN_OR_RETURN(writer.size_bytes_, whole_lines(file, path));
  writer.cut_ = true;
  return writer;
}

Status RecordWriter::append(std::string line, bool sync) {
  CHECK(file_ >= 0, "a closed run record is written to");
  if (cut_ && write_points::truncate(file_, size_bytes_) != 0)
    return system_error("remove the cut last line of the run record", errno, path_);
  line += '\n';
  cut_ = true;
  for (std::string_view rest = line; !rest.empty();) {
    const int64_t count = write_points::write(file_, std::as_bytes(std::span(rest)));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("write the run record", errno, path_);
    rest.remove_prefix(static_cast<size_t>(count));
  }
  cut_ = false;
  size_bytes_ += static_cast<int64_t>(line.size());
  return sync ? this->sync() : Status();
}

Status RecordWriter::sync() {
  if (write_points::sync(file_) != 0) return system_error("sync the run record", errno, path_);
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
Status RecordWriter::write(const RecordNote& event) {
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
  if (file >= 0 && ::close(file) != 0) return system_error("close the run record", errno, path_);
  return {};
}

}  // namespace tenon
