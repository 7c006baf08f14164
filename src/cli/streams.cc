#include "cli/streams.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>

#include "io/mapped_file.h"

namespace tenon {

namespace {

// What is there of standard input, up to the buffer's size; waits for the first byte. Empty at the end.
Result<std::string_view> read_some(std::span<char> buffer) {
  ssize_t count = 0;
  do {
    count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return io_error(fmt::format("cannot read: {}", std::strerror(errno)), "standard input");
  return std::string_view(buffer.data(), static_cast<size_t>(count));
}

// Calls `each` with the lines of `text`, numbered from `number` on, which is then the next one's.
Status lines_of(std::string_view text, const std::string& name, int64_t& number,
                FunctionRef<Status(std::string_view line, int64_t number)> each) {
  for (; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    Status status = each(line, number);
    if (!status.ok()) return std::move(status).error().within(fmt::format("{}:{}", name, number));
  }
  return {};
}

}  // namespace

Result<std::string> read_standard_input() {
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (true) {
    ASSIGN_OR_RETURN(const std::string_view some, read_some(buffer));
    if (some.empty()) return text;
    text += some;
  }
}

Status for_each_piece_of_input(std::string_view after, FunctionRef<Status(std::string_view pieces)> each) {
  std::string waiting;
  std::array<char, 1 << 16> buffer;
  while (true) {
    ASSIGN_OR_RETURN(const std::string_view some, read_some(buffer));
    if (some.empty()) return waiting.empty() ? Status() : each(waiting);
    const size_t whole = some.find_last_of(after) + 1;  // 0 where there is none
    if (whole > 0) {
      waiting += some.substr(0, whole);
      RETURN_IF_ERROR(each(waiting));
      waiting.clear();
    }
    waiting += some.substr(whole);
  }
}

Status for_each_line(const std::string& path,
                     FunctionRef<Status(std::string_view line, int64_t number)> each) {
  int64_t number = 1;
  if (path == "-") {
    return for_each_piece_of_input(
        "\n", [&](std::string_view lines) { return lines_of(lines, "standard input", number, each); });
  }
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path, MapAdvice::sequential));
  return lines_of({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path, number,
                  each);
}

void write_output(std::string_view bytes) {
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
}

void flush_output() {
  std::fflush(stdout);
}

}  // namespace tenon
