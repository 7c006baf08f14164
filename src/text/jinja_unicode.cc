// Python's view of text: code points, character classes and white space.
#include "text/jinja_unicode.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace tenon::jinja {
namespace {

struct CodePointRange {
  uint32_t first;
  uint32_t last;
};

#include "text/jinja_unicode_tables.inc"

template <size_t N>
bool in_ranges(const CodePointRange (&ranges)[N], uint32_t c) {
  auto it = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                             [](uint32_t value, const CodePointRange& range) { return value < range.first; });
  return it != std::begin(ranges) && c <= std::prev(it)->last;
}

utf8proc_category_t category(uint32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_letter_category(utf8proc_category_t category) {
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_mark_category(utf8proc_category_t category) {
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC;
}

constexpr size_t kShortText = 16;  // up to this size the plain search of the library is fast enough

size_t previous_offset(std::string_view bytes, size_t offset) {
  size_t at = offset - 1;
  while (at > 0 && offset - at < 4 && (static_cast<unsigned char>(bytes[at]) & 0xc0) == 0x80) --at;
  return at;
}

std::vector<uint32_t> sorted_code_points(std::string_view bytes) {
  auto out = to_code_points(bytes);
  std::sort(out.begin(), out.end());
  return out;
}

template <typename Test>
std::string_view strip_left_if(std::string_view bytes, Test test) {
  size_t begin = 0;
  while (begin < bytes.size()) {
    size_t next = begin;
    if (!test(next_code_point(bytes, next))) break;
    begin = next;
  }
  return bytes.substr(begin);
}

template <typename Test>
std::string_view strip_right_if(std::string_view bytes, Test test) {
  size_t end = bytes.size();
  while (end > 0) {
    const size_t at = previous_offset(bytes, end);
    size_t next = at;
    if (!test(next_code_point(bytes, next))) break;
    end = at;
  }
  return bytes.substr(0, end);
}

}  // namespace

bool is_ascii(std::string_view bytes) {
  unsigned char all = 0;
  for (unsigned char c : bytes) all |= c;
  return all < 0x80;
}

bool is_utf8(std::string_view bytes) {
  size_t offset = 0;
  while (offset < bytes.size()) {
    if (static_cast<unsigned char>(bytes[offset]) < 0x80) {
      ++offset;
      continue;
    }
    utf8proc_int32_t c = 0;
    const auto used = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()) + offset,
                                       static_cast<utf8proc_ssize_t>(bytes.size() - offset), &c);
    if (used < 1) return false;
    offset += static_cast<size_t>(used);
  }
  return true;
}

int64_t code_point_count(std::string_view bytes) {
  int64_t count = 0;
  for (unsigned char c : bytes) count += (c & 0xc0) != 0x80;
  return count;
}

uint32_t next_code_point(std::string_view bytes, size_t& offset) {
  const auto first = static_cast<unsigned char>(bytes[offset]);
  const size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  if (length == 1 || offset + length > bytes.size()) {
    ++offset;
    return first;
  }
  uint32_t c = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) c = c << 6 | (static_cast<unsigned char>(bytes[offset + i]) & 0x3f);
  offset += length;
  return c;
}

void append_code_point(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

std::vector<uint32_t> to_code_points(std::string_view bytes) {
  std::vector<uint32_t> out;
  out.reserve(bytes.size());
  for (size_t offset = 0; offset < bytes.size();) out.push_back(next_code_point(bytes, offset));
  return out;
}

std::string from_code_points(const std::vector<uint32_t>& code_points) {
  std::string out;
  for (uint32_t c : code_points) append_code_point(out, c);
  return out;
}

size_t byte_offset(std::string_view bytes, int64_t index) {
  size_t offset = 0;
  while (index > 0 && offset < bytes.size()) {
    next_code_point(bytes, offset);
    --index;
  }
  return offset;
}

bool is_space(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool is_line_break(uint32_t c) {
  return (c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_printable(uint32_t c) {
  if (c < 0x7f) return c >= 0x20;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_alpha(uint32_t c) {
  return is_letter_category(category(c));
}
bool is_decimal(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}
bool is_digit(uint32_t c) {
  return is_decimal(c) || in_ranges(kOtherDigits, c);
}

bool is_numeric(uint32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO ||
         in_ranges(kOtherNumerics, c);
}

bool is_alnum(uint32_t c) {
  return is_alpha(c) || is_numeric(c);
}
bool is_upper(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU || in_ranges(kOtherUpper, c);
}
bool is_lower(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL || in_ranges(kOtherLower, c);
}
bool is_title(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LT;
}
bool is_word(uint32_t c) {
  return c == '_' || is_alnum(c);
}

bool is_identifier(std::string_view name) {
  if (name.empty()) return false;
  size_t offset = 0;
  const uint32_t first = next_code_point(name, offset);
  if (first != '_' && !is_alpha(first) && category(first) != UTF8PROC_CATEGORY_NL) return false;
  while (offset < name.size()) {
    const uint32_t c = next_code_point(name, offset);
    const auto kind = category(c);
    if (c != '_' && c != 0xb7 && !is_letter_category(kind) && !is_mark_category(kind) &&
        kind != UTF8PROC_CATEGORY_ND && kind != UTF8PROC_CATEGORY_NL && kind != UTF8PROC_CATEGORY_PC) {
      return false;
    }
  }
  return true;
}

std::string_view strip_left(std::string_view bytes) {
  return strip_left_if(bytes, is_space);
}
std::string_view strip_right(std::string_view bytes) {
  return strip_right_if(bytes, is_space);
}

std::string_view strip_left(std::string_view bytes, std::string_view chars) {
  const auto set = sorted_code_points(chars);
  return strip_left_if(bytes, [&](uint32_t c) { return std::binary_search(set.begin(), set.end(), c); });
}

std::string_view strip_right(std::string_view bytes, std::string_view chars) {
  const auto set = sorted_code_points(chars);
  return strip_right_if(bytes, [&](uint32_t c) { return std::binary_search(set.begin(), set.end(), c); });
}

size_t find_text(std::string_view text, std::string_view wanted, size_t from) {
  if (wanted.size() <= kShortText || from > text.size()) return text.find(wanted, from);
  const void* at = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return at == nullptr ? std::string_view::npos
                       : static_cast<size_t>(static_cast<const char*>(at) - text.data());
}

size_t rfind_text(std::string_view text, std::string_view wanted) {
  if (wanted.size() <= kShortText) return text.rfind(wanted);
  const std::string text_back(text.rbegin(), text.rend());
  const std::string wanted_back(wanted.rbegin(), wanted.rend());
  const size_t at = find_text(text_back, wanted_back);
  return at == std::string_view::npos ? at : text.size() - at - wanted.size();
}

std::string quote(std::string_view bytes) {
  const bool has_single = bytes.find('\'') != std::string_view::npos;
  const bool has_double = bytes.find('"') != std::string_view::npos;
  const char mark = has_single && !has_double ? '"' : '\'';
  std::string out(1, mark);
  for (size_t offset = 0; offset < bytes.size();) {
    const size_t begin = offset;
    const auto plain = [&](char c) { return c >= 0x20 && c < 0x7f && c != mark && c != '\\'; };
    while (offset < bytes.size() && plain(bytes[offset])) ++offset;
    out += bytes.substr(begin, offset - begin);
    if (offset == bytes.size()) break;
    const uint32_t c = next_code_point(bytes, offset);
    if (c == static_cast<uint32_t>(mark) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      append_code_point(out, c);
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", c);
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += fmt::format("\\U{:08x}", c);
    }
  }
  out += mark;
  return out;
}

}  // namespace tenon::jinja
