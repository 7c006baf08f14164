// Upper, lower and title case of text.
#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "text/jinja_unicode.h"

namespace tenon::jinja {
namespace {

struct SpecialCase {
  uint32_t code_point;
  const char* upper;
  const char* title;
  const char* lower;
};

#include "text/jinja_case_table.inc"

const SpecialCase* special_case(uint32_t c) {
  auto it =
      std::lower_bound(std::begin(kSpecialCases), std::end(kSpecialCases), c,
                       [](const SpecialCase& special, uint32_t value) { return special.code_point < value; });
  return it != std::end(kSpecialCases) && it->code_point == c ? it : nullptr;
}

bool is_cased(uint32_t c) {
  return is_upper(c) || is_lower(c) || is_title(c);
}

// What the final-sigma rule of Unicode looks through.
bool is_case_ignorable(uint32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xb7 || c == 0x2018 || c == 0x2019 || c == 0x2024 ||
             c == 0x2027 || c == 0xff07 || c == 0xff0e || c == 0xff1a;
  }
}

constexpr uint32_t kSigma = 0x3a3;

bool is_final_sigma(const std::vector<uint32_t>& text, size_t at) {
  size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

void append_upper(std::string& out, uint32_t c) {
  if (const SpecialCase* special = special_case(c)) {
    out += special->upper;
  } else {
    append_code_point(out, static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_title(std::string& out, uint32_t c) {
  if (const SpecialCase* special = special_case(c)) {
    out += special->title;
  } else {
    append_code_point(out, static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_lower(std::string& out, const std::vector<uint32_t>& text, size_t at) {
  const uint32_t c = text[at];
  if (c == kSigma) {
    append_code_point(out, is_final_sigma(text, at) ? 0x3c2 : 0x3c3);
  } else if (const SpecialCase* special = special_case(c)) {
    out += special->lower;
  } else {
    append_code_point(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

std::string ascii_map(std::string_view bytes, bool upper) {
  std::string out(bytes);
  for (char& c : out) {
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return out;
}

}  // namespace

std::string to_upper(std::string_view bytes) {
  if (is_ascii(bytes)) return ascii_map(bytes, true);
  std::string out;
  for (size_t offset = 0; offset < bytes.size();) append_upper(out, next_code_point(bytes, offset));
  return out;
}

std::string to_lower(std::string_view bytes) {
  if (is_ascii(bytes)) return ascii_map(bytes, false);
  const auto text = to_code_points(bytes);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) append_lower(out, text, i);
  return out;
}

std::string to_title(std::string_view bytes) {
  const auto text = to_code_points(bytes);
  std::string out;
  bool after_cased = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (after_cased) {
      append_lower(out, text, i);
    } else {
      append_title(out, text[i]);
    }
    after_cased = is_cased(text[i]);
  }
  return out;
}

std::string to_capitalized(std::string_view bytes) {
  const auto text = to_code_points(bytes);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == 0) {
      append_title(out, text[0]);
    } else {
      append_lower(out, text, i);
    }
  }
  return out;
}

std::string swap_case(std::string_view bytes) {
  const auto text = to_code_points(bytes);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_upper(text[i])) {
      append_lower(out, text, i);
    } else if (is_lower(text[i])) {
      append_upper(out, text[i]);
    } else {
      append_code_point(out, text[i]);
    }
  }
  return out;
}

std::string case_fold(std::string_view bytes) {
  std::string out;
  for (size_t offset = 0; offset < bytes.size();) {
    const auto c = static_cast<utf8proc_int32_t>(next_code_point(bytes, offset));
    utf8proc_int32_t folded[8];
    int last_boundary = UTF8PROC_BOUNDCLASS_START;
    const auto count = utf8proc_decompose_char(c, folded, 8, UTF8PROC_CASEFOLD, &last_boundary);
    for (utf8proc_ssize_t i = 0; i < count && i < 8; ++i)
      append_code_point(out, static_cast<uint32_t>(folded[i]));
  }
  return out;
}

}  // namespace tenon::jinja
