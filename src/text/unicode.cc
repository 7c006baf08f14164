#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>

namespace tenon {
namespace {

bool is_white_space(uint32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

// Symbols with the property Other_Alphabetic, and Join_Control.
bool is_word_extra(uint32_t c) {
  return (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
         (c >= 0x1f170 && c <= 0x1f189) || c == 0x200c || c == 0x200d;
}

CharClass category_class(utf8proc_category_t category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
      return kLetter | kWord | kUpperish;
    case UTF8PROC_CATEGORY_LL:
      return kLetter | kWord | kLowerish;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kLetter | kWord | kUpperish | kLowerish;
    case UTF8PROC_CATEGORY_MN:
      return kMark | kWord | kUpperish | kLowerish | kNonspacing;
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kMark | kWord | kUpperish | kLowerish;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
      return kNumber | kWord;
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    case UTF8PROC_CATEGORY_PC:
      return kPunctuation | kWord;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return kSymbol;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return 0;
    default:
      return kOther;
  }
}

// What is newer than utf8proc's tables may be.
struct RecentRange {
  uint32_t first, last;
  utf8proc_category_t category;
};
constexpr RecentRange kRecent[] = {
#include "text/unicode_recent.inc"
};

CharClass make_class(uint32_t c) {
  const auto recent =
      std::lower_bound(std::begin(kRecent), std::end(kRecent), c,
                       [](const RecentRange& range, uint32_t value) { return range.last < value; });
  const bool is_recent = recent != std::end(kRecent) && recent->first <= c;
  CharClass out =
      category_class(is_recent ? recent->category : utf8proc_category(static_cast<utf8proc_int32_t>(c)));
  if (is_white_space(c)) out |= kSpace;
  if (c == '\r' || c == '\n') out |= kNewline;
  if (is_word_extra(c)) out |= kWord;
  if ((c | 32) >= 'a' && (c | 32) <= 'z') out |= kAsciiLetter;
  return out;
}

}  // namespace

CharClasses::CharClasses() {
  std::map<std::vector<CharClass>, uint16_t> seen;
  std::vector<CharClass> block(256);
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    // Planes 4 to 13 are unassigned, 15 and 16 private use: both are category C.
    const uint32_t plane = b >> 8;
    const bool empty = (plane >= 4 && plane <= 13) || plane >= 15;
    for (uint32_t i = 0; i < 256; ++i) block[i] = empty ? kOther : make_class(b << 8 | i);
    const auto [at, added] = seen.try_emplace(block, static_cast<uint16_t>(seen.size()));
    if (added) classes_.insert(classes_.end(), block.begin(), block.end());
    blocks_[b] = at->second;
  }
  for (uint32_t c = 0; c < 128; ++c) ascii_[c] = make_class(c);
}

const CharClasses& CharClasses::get() {
  static const CharClasses classes;
  return classes;
}

Char char_before(std::string_view text, size_t end) {
  const char* stop = text.data() + end;
  for (size_t back = 1; back <= 4 && back <= end; ++back) {
    const char* p = stop - back;
    if ((static_cast<unsigned char>(*p) & 0xc0) == 0x80 && back < 4) continue;
    const Char c = decode_char(p, stop);
    if (c.bytes == static_cast<int>(back)) return c;
    break;
  }
  return {kInvalidByte + static_cast<unsigned char>(stop[-1]), 1};
}

void append_char(std::string& out, uint32_t value) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xc0 | value >> 6);
    put(0x80 | (value & 0x3f));
  } else if (value < 0x10000) {
    put(0xe0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3f));
    put(0x80 | (value & 0x3f));
  } else if (value < kInvalidByte) {
    put(0xf0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3f));
    put(0x80 | (value >> 6 & 0x3f));
    put(0x80 | (value & 0x3f));
  } else {
    put(value & 0xff);
  }
}

bool is_ascii(std::string_view text) {
  const char* p = text.data();
  const char* end = p + text.size();
  for (; end - p >= 8; p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    if (word & 0x8080808080808080ull) return false;
  }
  for (; p < end; ++p) {
    if (static_cast<unsigned char>(*p) >= 0x80) return false;
  }
  return true;
}

bool is_valid_utf8(std::string_view text) {
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    const Char c = decode_char(p, end);
    if (!c.valid()) return false;
    p += c.bytes;
  }
  return true;
}

namespace {

// Length of the longest prefix of `text` that begins a well-formed character, and whether it is whole.
struct Subpart {
  size_t bytes = 1;
  bool whole = false;
  bool cut_short = false;  // the text ended before the character did
};

Subpart first_subpart(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80) return {1, true, false};
  if (lead < 0xc2 || lead > 0xf4) return {1, false, false};
  const size_t need = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  const unsigned low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  size_t n = 1;
  for (; n < need; ++n) {
    if (n == text.size()) return {n, false, true};
    if (at(n) < (n == 1 ? low : 0x80u) || at(n) > (n == 1 ? high : 0xbfu)) return {n, false, false};
  }
  return {n, true, false};
}

}  // namespace

size_t incomplete_tail(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto c = static_cast<unsigned char>(text[text.size() - back]);
    if (c < 0x80) return 0;
    if (c >= 0xc0) {
      const Subpart part = first_subpart(text.substr(text.size() - back));
      return part.cut_short && part.bytes == back ? back : 0;
    }
  }
  return 0;
}

void append_lossy(std::string& out, std::string_view text) {
  size_t good = 0;
  size_t pos = 0;
  while (pos < text.size()) {
    const Subpart part = first_subpart(text.substr(pos));
    if (!part.whole) {
      out.append(text.substr(good, pos - good));
      out.append("\xef\xbf\xbd");
      good = pos + part.bytes;
    }
    pos += part.bytes;
  }
  out.append(text.substr(good));
}

}  // namespace tenon
