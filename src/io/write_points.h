// The few calls through which bytes reach a disk: everything in Tenon that writes files goes through these,
// so a test can make any one of them fail, write short, or kill the process. Points are counted over the
// process. Each call behaves as the POSIX call it wraps (-1 and errno). Thread-safe; costs one atomic load
// when idle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"

namespace tenon::write_points {

int create(const char* path, int flags);  // open(2) with O_CREAT and mode 0666
int64_t write(int fd, std::span<const std::byte> bytes);
int sync(int fd);  // fsync
int rename(const char* from, const char* to);
int truncate(int fd, int64_t size_bytes);  // ftruncate
int make_folder(const char* path);         // mkdir with mode 0777
int remove(const char* path);              // unlink, or rmdir

// What goes wrong from a write point on.
enum class FaultKind {
  short_write,  // the first write from there on takes half of its bytes; all else goes well
  no_space,     // ENOSPC from there on, after half of the bytes of the first write
  io_error,     // EIO at that point alone
  read_only,    // EROFS from there on
  kill,         // SIGKILL to this process at that point, after half of the bytes if it is a write
};

struct Fault {
  FaultKind kind = FaultKind::io_error;
  int64_t at = 0;  // the write point, counted from 0 since the fault was installed
};

// "kill@7", "no_space@0", ... Error: bad_argument naming the text.
Result<Fault> parse_fault(std::string_view text);

// Installs a fault for the whole process until destroyed; with no fault given it only counts. One at a time.
class ScopedFault {
 public:
  ScopedFault();
  explicit ScopedFault(Fault fault);
  ~ScopedFault();
  ScopedFault(const ScopedFault&) = delete;
  ScopedFault& operator=(const ScopedFault&) = delete;

  int64_t points() const;  // write points passed since installed
};

}  // namespace tenon::write_points
