// Normalisation forms (Unicode Standard Annex 15), case and accents, with where each character came from.
// utf8proc gives the tables; order and composition are done here because origins must follow.
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "text/normalise.h"
#include "text/unicode.h"

namespace tenon {
namespace {

// A character of the result. `added` counts characters of the source as the crate
// unicode-normalization-alignments does, by which tokenizers tells where a character comes from: 0 takes the
// place of the next one of the source, 1 of none, -n of n + 1 of them.
struct Placed {
  uint32_t value = 0;
  int combining = 0;  // canonical combining class
  int added = 0;
};

int combining_class(uint32_t value) {
  return value < 0x300 || value >= kInvalidByte
             ? 0
             : utf8proc_get_property(static_cast<utf8proc_int32_t>(value))->combining_class;
}

// The character that a pair composes to, or 0.
uint32_t compose_pair(uint32_t a, uint32_t b) {
  utf8proc_int32_t pair[2] = {static_cast<utf8proc_int32_t>(a), static_cast<utf8proc_int32_t>(b)};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  return utf8proc_normalize_utf32(pair, 2, options) == 1 ? static_cast<uint32_t>(pair[0]) : 0;
}

// Full decomposition of one character.
int decompose(uint32_t value, bool compatibility, utf8proc_int32_t* out, int capacity) {
  int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
  if (compatibility) options |= UTF8PROC_COMPAT;
  int boundary = 0;
  const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(value), out, capacity,
                                         static_cast<utf8proc_option_t>(options), &boundary);
  return n < 0 || n > capacity ? 0 : static_cast<int>(n);
}

// Two bits a character: it changes when decomposed canonically and put together again, or it can be the
// second of a composition. What has neither is NFC_Quick_Check=Yes.
class ComposeTable {
 public:
  static const ComposeTable& get() {
    static const ComposeTable table;
    return table;
  }
  // The character keeps its form and never joins the one before it.
  bool stays(uint32_t value) const { return value < 0xc0 || value >= unstable_.size() || !unstable_[value]; }

 private:
  ComposeTable() : unstable_(0x30000) {
    utf8proc_int32_t parts[32];
    for (uint32_t c = 0xc0; c < unstable_.size(); ++c) {
      if (c >= 0xac00 && c <= 0xd7a3) continue;  // Hangul syllables stay
      const int n = decompose(c, false, parts, 32);
      if (n == 1 && static_cast<uint32_t>(parts[0]) == c) continue;
      if (n < 1) continue;
      std::vector<utf8proc_int32_t> whole(parts, parts + n);
      const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
      const auto m = utf8proc_normalize_utf32(whole.data(), n, options);
      if (m == 1 && static_cast<uint32_t>(whole[0]) == c) {
        if (n >= 2) unstable_[static_cast<size_t>(parts[n - 1])] = true;
      } else {
        unstable_[c] = true;
      }
    }
    for (uint32_t c = 0x1161; c <= 0x1175; ++c) unstable_[c] = true;
    for (uint32_t c = 0x11a8; c <= 0x11c2; ++c) unstable_[c] = true;
  }

  std::vector<bool> unstable_;
};

// Canonical order.
void sort_marks(std::vector<Placed>& chars) {
  for (auto begin = chars.begin(); begin != chars.end();) {
    if (begin->combining == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, chars.end(), [](const Placed& c) { return c.combining == 0; });
    std::stable_sort(begin, end, [](const Placed& a, const Placed& b) { return a.combining < b.combining; });
    begin = end;
  }
}

void compose(std::vector<Placed>& chars) {
  size_t kept = 0;
  size_t starter = SIZE_MAX;
  for (size_t i = 0; i < chars.size(); ++i) {
    const Placed c = chars[i];
    if (starter != SIZE_MAX) {
      const bool adjacent = kept == starter + 1;
      // Blocked: a character of the same or a higher class, or another starter, stands between.
      if (adjacent || chars[kept - 1].combining < c.combining) {
        if (const uint32_t whole = compose_pair(chars[starter].value, c.value)) {
          chars[starter].value = whole;
          chars[starter].added += c.added - 1;
          continue;
        }
      }
    }
    if (c.combining == 0) starter = kept;
    chars[kept++] = c;
  }
  chars.resize(kept);
}

// Of the characters of category C: tokenizers keeps unassigned ones and format characters newer than
// Unicode 8.
bool is_dropped_by_bert(uint32_t value) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(value))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CO:
      return true;
    case UTF8PROC_CATEGORY_CF:
      return !(value == 0x890 || value == 0x891 || value == 0x8e2 || value == 0x110cd ||
               (value >= 0x13430 && value <= 0x1343f));
    default:
      return false;
  }
}

class FormWriter {
 public:
  FormWriter(const NormaliseForm& form, const TextView& text, bool tracked)
      : form_(form), text_(text), out_(text, tracked) {}

  AlignedText run() {
    const ComposeTable& table = ComposeTable::get();
    const char* data = text_.bytes.data();
    const char* end = data + text_.bytes.size();
    size_t segment = 0;  // begins with a character nothing before it can change
    bool dirty = false;
    int last_class = 0;
    for (const char* p = data; p < end;) {
      const Char c = decode_char(p, end);
      const int combining = combining_class(c.value);
      const bool stays = form_.compose && !form_.compatibility ? table.stays(c.value) : c.value < 0xa0;
      if (combining == 0 && (form_.compose ? table.stays(c.value) : true)) {
        flush(segment, static_cast<size_t>(p - data), dirty);
        segment = static_cast<size_t>(p - data);
        dirty = false;
        last_class = 0;
      }
      if (!stays || (combining && combining < last_class)) dirty = true;
      if (combining) last_class = combining;
      p += c.bytes;
    }
    flush(segment, text_.bytes.size(), dirty);
    return out_.take();
  }

 private:
  void flush(size_t begin, size_t end, bool dirty) {
    if (begin == end) return;
    if (!dirty) return out_.keep(begin, end);
    chars_.clear();
    const char* stop = text_.bytes.data() + end;
    for (size_t at = begin; at < end;) {
      const Char c = decode_char(text_.bytes.data() + at, stop);
      at += static_cast<size_t>(c.bytes);
      std::array<utf8proc_int32_t, 32> parts;
      const int n = c.valid() ? decompose(c.value, form_.compatibility, parts.data(), 32) : 0;
      if (n == 0) chars_.push_back({c.value, 0, 0});
      for (int i = 0; i < n; ++i) {
        const auto value = static_cast<uint32_t>(parts[static_cast<size_t>(i)]);
        chars_.push_back({value, combining_class(value), i > 0 ? 1 : 0});
      }
    }
    sort_marks(chars_);
    if (form_.compose) compose(chars_);
    put_chars(begin, end);
  }

  // A character that is added stands for the one before it.
  void put_chars(size_t begin, size_t end) {
    const char* stop = text_.bytes.data() + end;
    size_t at = begin;
    for (const Placed& c : chars_) {
      if (c.added > 0) {
        out_.put_char(c.value, at > 0 ? out_.at(at - 1) : out_.before_all());
        continue;
      }
      out_.put_char(c.value, out_.at(at));
      for (int taken = c.added; taken <= 0 && at < end; ++taken) {
        at += static_cast<size_t>(decode_char(text_.bytes.data() + at, stop).bytes);
      }
    }
  }

  const NormaliseForm& form_;
  const TextView& text_;
  Rewriter out_;
  std::vector<Placed> chars_;
};

}  // namespace

AlignedText normalise_form(const NormaliseForm& step, const TextView& text, bool tracked) {
  return FormWriter(step, text, tracked).run();
}

AlignedText normalise_lowercase(const TextView& text, bool tracked) {
  Rewriter out(text, tracked);
  const char* data = text.bytes.data();
  const char* end = data + text.bytes.size();
  for (const char* p = data; p < end;) {
    const Char c = decode_char(p, end);
    const auto at = static_cast<size_t>(p - data);
    p += c.bytes;
    const uint32_t lower =
        c.value < 128 ? (c.value >= 'A' && c.value <= 'Z' ? c.value | 32 : c.value)
        : c.valid()   ? static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.value)))
                      : c.value;
    if (c.value == 0x130) {  // the one character whose lower case is two
      out.put_char('i', out.at(at));
      out.put_char(0x307, out.at(at));
    } else if (lower == c.value) {
      out.keep(at, at + static_cast<size_t>(c.bytes));
    } else {
      out.put_char(lower, out.at(at));
    }
  }
  return out.take();
}

AlignedText normalise_strip_accents(const TextView& text, bool tracked) {
  const CharClasses& classes = CharClasses::get();
  Rewriter out(text, tracked);
  const char* data = text.bytes.data();
  const char* end = data + text.bytes.size();
  size_t good = 0;
  for (const char* p = data; p < end;) {
    const Char c = decode_char(p, end);
    const auto at = static_cast<size_t>(p - data);
    p += c.bytes;
    if (!(classes.of(c.value) & kNonspacing)) continue;
    out.keep(good, at);
    good = at + static_cast<size_t>(c.bytes);
  }
  out.keep(good, text.bytes.size());
  return out.take();
}

AlignedText normalise_bert(const NormaliseBert& step, const TextView& text, bool tracked) {
  const CharClasses& classes = CharClasses::get();
  Rewriter out(text, tracked);
  const char* data = text.bytes.data();
  const char* end = data + text.bytes.size();
  for (const char* p = data; p < end;) {
    const Char c = decode_char(p, end);
    const auto at = static_cast<size_t>(p - data);
    const auto next = at + static_cast<size_t>(c.bytes);
    p += c.bytes;
    const uint32_t v = c.value;
    if (step.clean_text) {
      const bool is_break = v == '\t' || v == '\n' || v == '\r';
      if (v == 0 || v == 0xfffd || (!is_break && classes.of(v) & kOther && is_dropped_by_bert(v))) {
        continue;
      }
      if (classes.of(v) & kSpace) {
        out.put(" ", out.at(at));
        continue;
      }
    }
    const bool ideograph = (v >= 0x4e00 && v <= 0x9fff) || (v >= 0x3400 && v <= 0x4dbf) ||
                           (v >= 0x20000 && v <= 0x2a6df) || (v >= 0x2a700 && v <= 0x2b73f) ||
                           (v >= 0x2b740 && v <= 0x2b81f) || (v >= 0x2b920 && v <= 0x2ceaf) ||
                           (v >= 0xf900 && v <= 0xfaff) || (v >= 0x2f800 && v <= 0x2fa1f);
    const bool spaced = step.split_cjk && ideograph;
    if (spaced) out.put(" ", out.at(at));
    out.keep(at, next);
    if (spaced) out.put(" ", out.at(at));
  }
  AlignedText done = out.take();
  const auto then = [&](auto&& rewrite) { done = rewrite(view_of(done, text.at_start)); };
  if (step.strip_accents) {
    then([&](const TextView& view) { return normalise_form({false, false}, view, tracked); });
    then([&](const TextView& view) { return normalise_strip_accents(view, tracked); });
  }
  if (step.lowercase) then([&](const TextView& view) { return normalise_lowercase(view, tracked); });
  return done;
}

}  // namespace tenon
