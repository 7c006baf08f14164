#include "cli/streams.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "io/mapped_file.h"

namespace tenon {

Result<std::string> read_standard_input() {
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), stdin))
    text.append(buffer.data(), count);
  if (std::ferror(stdin) != 0)
    return io_error(fmt::format("cannot read: {}", std::strerror(errno)), "standard input");
  return text;
}

Status for_each_line(const std::string& path,
                     FunctionRef<Status(std::string_view line, int64_t number)> each) {
  std::string typed;
  std::optional<MappedFile> file;
  std::string_view text;
  if (path == "-") {
    ASSIGN_OR_RETURN(typed, read_standard_input());
    text = typed;
  } else {
    ASSIGN_OR_RETURN(file, MappedFile::open(path, MapAdvice::sequential));
    text = {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
  }
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    Status status = each(line, number);
    if (!status.ok())
      return std::move(status).error().within(
          fmt::format("{}:{}", path == "-" ? "standard input" : path, number));
  }
  return {};
}

void write_output(std::string_view bytes) {
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
}

}  // namespace tenon
