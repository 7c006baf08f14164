#include "base/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <string_view>

namespace tenon {
namespace {

// The beginning of a small file, as much as one read gives.
std::string_view read_start(const char* path, std::span<char> buffer) {
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t count = ::read(file, buffer.data(), buffer.size());
  ::close(file);
  return {buffer.data(), count > 0 ? static_cast<size_t>(count) : 0};
}

int64_t leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

int64_t resident_bytes() {
  char buffer[128];
  const std::string_view pages = read_start("/proc/self/statm", buffer);  // "size resident shared ..."
  const size_t space = pages.find(' ');
  if (space == pages.npos) return 0;
  return leading_number(pages.substr(space)) * ::sysconf(_SC_PAGESIZE);
}

int64_t peak_resident_bytes() {
  constexpr std::string_view kKey = "VmHWM:";
  char buffer[4096];
  const std::string_view status = read_start("/proc/self/status", buffer);
  const size_t line = status.find(kKey);
  return line == status.npos ? 0 : leading_number(status.substr(line + kKey.size())) * 1024;
}

}  // namespace tenon
