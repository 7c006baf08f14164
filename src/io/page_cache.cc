#include "io/page_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <vector>

#include "base/threads.h"
#include "io/describe.h"

namespace tenon {
namespace {

constexpr int64_t kPieceBytes = 4 << 20;

struct Piece {
  int file;  // descriptor
  int64_t offset, bytes;
};

class OpenFiles {
 public:
  OpenFiles() = default;
  ~OpenFiles() {
    for (int file : files_) ::close(file);
  }
  OpenFiles(const OpenFiles&) = delete;
  OpenFiles& operator=(const OpenFiles&) = delete;

  // Adds the pieces of the first `most_bytes` of a file.
  Status open(const std::string& path, int64_t most_bytes, std::vector<Piece>& pieces) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return system_error("open", errno, path);
    files_.push_back(file);
    struct stat info {};
    if (::fstat(file, &info) != 0) return system_error("read", errno, path);
    const int64_t end = std::min<int64_t>(info.st_size, most_bytes);
    for (int64_t at = 0; at < end; at += kPieceBytes) {
      pieces.push_back({file, at, std::min(kPieceBytes, end - at)});
    }
    return {};
  }

 private:
  std::vector<int> files_;
};

// The bytes read; less than there are where a file shrank or cannot be read.
int64_t read_all(const std::vector<Piece>& pieces, std::vector<std::vector<char>>& buffers,
                 ThreadPool& pool) {
  std::atomic<size_t> next = 0;
  std::atomic<int64_t> total = 0;
  pool.run([&](int thread) {
    std::vector<char>& buffer = buffers[static_cast<size_t>(thread)];
    for (size_t i = next++; i < pieces.size(); i = next++) {
      const ssize_t got = ::pread(pieces[i].file, buffer.data(), static_cast<size_t>(pieces[i].bytes),
                                  static_cast<off_t>(pieces[i].offset));
      if (got > 0) total += got;
    }
  });
  return total;
}

}  // namespace

Result<double> page_cache_bytes_per_second(std::span<const std::string> files, int threads,
                                           int64_t most_bytes) {
  using Clock = std::chrono::steady_clock;
  OpenFiles open;
  std::vector<Piece> pieces;
  for (const std::string& path : files) {
    int64_t taken = 0;
    for (const Piece& piece : pieces) taken += piece.bytes;
    RETURN_IF_ERROR(open.open(path, most_bytes - taken, pieces));
  }
  ThreadPool pool(threads);
  std::vector<std::vector<char>> buffers(static_cast<size_t>(threads), std::vector<char>(kPieceBytes));
  if (read_all(pieces, buffers, pool) == 0) return 0.0;
  const Clock::time_point begin = Clock::now();
  const int64_t bytes = read_all(pieces, buffers, pool);
  return static_cast<double>(bytes) / std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace tenon
