#include "text/text_view.h"

#include <algorithm>

#include "text/unicode.h"

namespace tenon {
namespace {

bool continues_char(std::string_view bytes, size_t at) {
  return at < bytes.size() && (static_cast<unsigned char>(bytes[at]) & 0xc0) == 0x80;
}

// The start of the character that covers byte `at`.
size_t char_begin(std::string_view bytes, size_t at) {
  for (size_t back = 0; back < 4 && back <= at; ++back) {
    if (continues_char(bytes, at - back)) continue;
    const Char c = decode_char(bytes.data() + at - back, bytes.data() + bytes.size());
    return static_cast<size_t>(c.bytes) > back ? at - back : at;
  }
  return at;
}

size_t char_end(std::string_view bytes, size_t at) {
  const size_t begin = char_begin(bytes, at);
  return begin + static_cast<size_t>(decode_char(bytes.data() + begin, bytes.data() + bytes.size()).bytes);
}

}  // namespace

Origin origin_at(const TextView& view, size_t at) {
  if (view.origin) return view.origin[at];
  return {view.base + static_cast<int64_t>(char_begin(view.bytes, at)),
          view.base + static_cast<int64_t>(char_end(view.bytes, at))};
}

Origin origin_of(const TextView& view, size_t begin, size_t end) {
  if (begin >= end) {
    const int64_t at = view.origin ? (begin < view.bytes.size() ? view.origin[begin].begin : 0)
                                   : view.base + static_cast<int64_t>(begin);
    return {at, at};
  }
  if (view.origin) return {view.origin[begin].begin, view.origin[end - 1].end};
  // A token may begin or end inside a character; ASCII neighbours need no look.
  const size_t first = continues_char(view.bytes, begin) ? char_begin(view.bytes, begin) : begin;
  const size_t last =
      static_cast<unsigned char>(view.bytes[end - 1]) < 0x80 ? end : char_end(view.bytes, end - 1);
  return {view.base + static_cast<int64_t>(first), view.base + static_cast<int64_t>(last)};
}

Rewriter::Rewriter(const TextView& from, bool tracked) : from_(from), tracked_(tracked) {
  out_.bytes.reserve(from.bytes.size() + from.bytes.size() / 8 + 16);
  if (tracked_) out_.origin.reserve(out_.bytes.capacity());
}

void Rewriter::keep(size_t begin, size_t end) {
  out_.bytes.append(from_.bytes.substr(begin, end - begin));
  if (!tracked_) return;
  if (from_.origin) {
    out_.origin.insert(out_.origin.end(), from_.origin + begin, from_.origin + end);
    return;
  }
  while (begin < end) {
    const auto at = from_.base + static_cast<int64_t>(begin);
    if (static_cast<unsigned char>(from_.bytes[begin]) < 0x80) {
      out_.origin.push_back({at, at + 1});
      ++begin;
      continue;
    }
    const Origin whole = origin_at(from_, begin);
    const size_t stop = std::min(end, static_cast<size_t>(whole.end - from_.base));
    out_.origin.insert(out_.origin.end(), stop - begin, whole);
    begin = stop;
  }
}

void Rewriter::put(std::string_view bytes, Origin origin) {
  out_.bytes.append(bytes);
  if (tracked_) out_.origin.insert(out_.origin.end(), bytes.size(), origin);
}

void Rewriter::put_char(uint32_t value, Origin origin) {
  const size_t before = out_.bytes.size();
  append_char(out_.bytes, value);
  if (tracked_) out_.origin.insert(out_.origin.end(), out_.bytes.size() - before, origin);
}

Origin Rewriter::at(size_t at) const {
  if (!tracked_) return {};
  if (from_.bytes.empty()) return {from_.base, from_.base};
  if (at >= from_.bytes.size()) {
    const Origin last = origin_at(from_, from_.bytes.size() - 1);
    return {last.end, last.end};
  }
  return origin_at(from_, at);
}

Origin Rewriter::before_all() const {
  const int64_t begin = at(0).begin;
  return {begin, begin};
}

}  // namespace tenon
