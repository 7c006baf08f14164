// Text on its way through the stages, with where each byte came from. Owned text is rewritten by normalisers
// (AlignedText); pre-tokenisers cut it into views (TextView).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon {

// Bytes [begin, end) of the input text.
struct Origin {
  int64_t begin = 0;
  int64_t end = 0;
};

// A stretch of text. Its origin is one of: an entry a byte; the identity from `base` (origin null); or not
// tracked at all, which looks the same and is never asked.
struct TextView {
  std::string_view bytes;
  const Origin* origin = nullptr;
  int64_t base = 0;
  bool at_start = false;               // begins where the input begins
  const char* readable_end = nullptr;  // of the buffer that `bytes` lies in

  TextView part(size_t begin, size_t end) const {
    return {bytes.substr(begin, end - begin), origin ? origin + begin : nullptr,
            base + static_cast<int64_t>(begin), at_start && begin == 0, readable_end};
  }
};

// The input bytes that bytes [begin, end) of the view stand for, widened to whole characters.
Origin origin_of(const TextView& view, size_t begin, size_t end);

// The origin of the one byte at `at`: of its whole character.
Origin origin_at(const TextView& view, size_t at);

struct AlignedText {
  std::string bytes;
  std::vector<Origin> origin;  // as long as bytes, or empty where not tracked
};

inline TextView view_of(const AlignedText& text, bool at_start) {
  return {text.bytes, text.origin.empty() ? nullptr : text.origin.data(), 0, at_start,
          text.bytes.data() + text.bytes.size()};
}

// Writes the text that replaces a view. `tracked` fills AlignedText::origin.
class Rewriter {
 public:
  Rewriter(const TextView& from, bool tracked);

  // Copies bytes [begin, end) of the source with their origins.
  void keep(size_t begin, size_t end);
  // New text that stands for `origin`.
  void put(std::string_view bytes, Origin origin);
  void put_char(uint32_t value, Origin origin);
  // The origin of the character of the source at `at`; an empty origin where not tracked.
  Origin at(size_t at) const;
  // The empty origin where the source begins.
  Origin before_all() const;

  AlignedText take() { return std::move(out_); }

 private:
  TextView from_;
  bool tracked_;
  AlignedText out_;
};

}  // namespace tenon
