#include "io/write_points.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <optional>

#include "base/check.h"

namespace tenon::write_points {
namespace {

// The installed fault. Process-wide on purpose: a whole run is killed at its n-th write point, whichever part
// of the program that is.
struct Injector {
  std::atomic<bool> installed{false};
  std::atomic<int64_t> count{0};
  std::atomic<bool> halved{false};
  std::optional<Fault> fault;
};

Injector& injector() {
  static Injector instance;
  return instance;
}

enum class Call { write, remove, other };

struct Verdict {
  int error = 0;      // errno to fail with
  bool half = false;  // write half first; the call then succeeds short
  bool kill = false;
};

Verdict fail_after_half(Call call, int error, Injector& state) {
  if (call == Call::remove) return {};  // a full disk still lets go of files
  if (call == Call::write && !state.halved.exchange(true)) return {.half = true};
  return {.error = error};
}

Verdict judge(Call call) {
  Injector& state = injector();
  if (!state.installed.load(std::memory_order_acquire)) return {};
  const int64_t point = state.count.fetch_add(1);
  if (!state.fault || point < state.fault->at) return {};
  switch (state.fault->kind) {
    case FaultKind::short_write:
      return {.half = call == Call::write && !state.halved.exchange(true)};
    case FaultKind::no_space:
      return fail_after_half(call, ENOSPC, state);
    case FaultKind::io_error:
      return {.error = point == state.fault->at ? EIO : 0};
    case FaultKind::read_only:
      return {.error = EROFS};
    case FaultKind::kill:
      return {.half = call == Call::write, .kill = true};
  }
  CHECK(false, "unknown fault");
}

int fail(int error) {
  errno = error;
  return -1;
}

// True when the call may go ahead; otherwise errno is set.
bool passes(Call call) {
  const Verdict verdict = judge(call);
  if (verdict.kill) ::kill(::getpid(), SIGKILL);
  if (verdict.error != 0) errno = verdict.error;
  return verdict.error == 0;
}

}  // namespace

int create(const char* path, int flags) {
  return passes(Call::other) ? ::open(path, flags | O_CREAT | O_CLOEXEC, 0666) : -1;
}

int64_t write(int fd, std::span<const std::byte> bytes) {
  const Verdict verdict = judge(Call::write);
  if (verdict.error != 0) return fail(verdict.error);
  const size_t size = verdict.half ? (bytes.size() + 1) / 2 : bytes.size();
  const int64_t written = ::write(fd, bytes.data(), size);
  if (verdict.kill) ::kill(::getpid(), SIGKILL);
  return written;
}

int sync(int fd) {
  return passes(Call::other) ? ::fsync(fd) : -1;
}

int rename(const char* from, const char* to) {
  return passes(Call::other) ? ::rename(from, to) : -1;
}

int truncate(int fd, int64_t size_bytes) {
  return passes(Call::other) ? ::ftruncate(fd, size_bytes) : -1;
}

int make_folder(const char* path) {
  return passes(Call::other) ? ::mkdir(path, 0777) : -1;
}

int remove(const char* path) {
  return passes(Call::remove) ? ::remove(path) : -1;
}

Result<Fault> parse_fault(std::string_view text) {
  constexpr std::pair<std::string_view, FaultKind> kNames[] = {{"short_write", FaultKind::short_write},
                                                               {"no_space", FaultKind::no_space},
                                                               {"io_error", FaultKind::io_error},
                                                               {"read_only", FaultKind::read_only},
                                                               {"kill", FaultKind::kill}};
  const size_t split = text.find('@');
  for (const auto& [name, kind] : kNames) {
    if (split == std::string_view::npos || text.substr(0, split) != name) continue;
    Fault fault{.kind = kind};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + split + 1, end, fault.at);
    if (error == std::errc() && stop == end && fault.at >= 0) return fault;
  }
  return bad_argument(fmt::format("'{}' is not a fault", text), "write fault",
                      "Write KIND@N with KIND one of short_write, no_space, io_error, read_only, kill.");
}

ScopedFault::ScopedFault() {
  CHECK(!injector().installed.load(), "a fault is already installed");
  injector().fault.reset();
  injector().count = 0;
  injector().halved = false;
  injector().installed.store(true, std::memory_order_release);
}

ScopedFault::ScopedFault(Fault fault) : ScopedFault() {
  injector().installed = false;
  injector().fault = fault;
  injector().installed.store(true, std::memory_order_release);
}

ScopedFault::~ScopedFault() {
  injector().installed.store(false, std::memory_order_release);
}

int64_t ScopedFault::points() const {
  return injector().count.load();
}

}  // namespace tenon::write_points
