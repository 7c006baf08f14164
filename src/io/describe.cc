#include "io/describe.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace tenon {
namespace {

constexpr size_t kLongestName = 120;

std::string_view hint_for(int error_number) {
  switch (error_number) {
    case ENOENT:
      return "Check the path; a folder in it may be missing.";
    case ENOSPC:
    case EDQUOT:
      return "Free space on that disk, or choose another folder.";
    case EROFS:
    case EACCES:
    case EPERM:
      return "Choose a place that this user may use, or change its permissions.";
    case EMFILE:
    case ENFILE:
      return "Raise the limit of open files (ulimit -n).";
    case EIO:
      return "The disk reports a failure; check it before trusting its files.";
    case EISDIR:
      return "Name a file, not a folder.";
    case ENOTDIR:
      return "Name a folder, not a file.";
    default:
      return {};
  }
}

// The length of a well-formed UTF-8 sequence at the front, or 0. Overlong forms of two bytes and lead bytes
// that never occur are refused; that is enough for printing.
size_t sequence_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xc2 ? 0
                        : lead < 0xe0 ? 2
                        : lead < 0xf0 ? 3
                        : lead < 0xf5 ? 4
                                      : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

Error system_error(std::string_view doing, int error_number, std::string_view path) {
  std::string message = fmt::format("cannot {}: {}", doing, std::generic_category().message(error_number));
  std::string subject(path);
  std::string hint(hint_for(error_number));
  if (error_number == ENOENT) return not_found(std::move(message), std::move(subject), std::move(hint));
  if (error_number == EISDIR || error_number == ENOTDIR)
    return bad_argument(std::move(message), std::move(subject), std::move(hint));
  return io_error(std::move(message), std::move(subject), std::move(hint));
}

std::string printable(std::string_view name) {
  std::string out;
  size_t at = 0;
  while (at < name.size() && out.size() < kLongestName) {
    const size_t length = sequence_length(name.substr(at));
    const auto lead = static_cast<unsigned char>(name[at]);
    if (length == 0 || lead < 0x20 || lead == 0x7f) {
      out += '?';
      at += 1;
    } else {
      out += name.substr(at, length);
      at += length;
    }
  }
  if (at < name.size()) out += fmt::format("... ({} bytes)", name.size());
  return out;
}

std::string bytes_text(int64_t bytes) {
  return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
}

}  // namespace tenon
