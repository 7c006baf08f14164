// Normalisation by SentencePiece's character map: as tokenizers applies it (grapheme by grapheme) and as
// SentencePiece itself does (longest match, spaces, the space before the text).
#include <utf8proc.h>

#include <algorithm>

#include "text/normalise.h"
#include "text/unicode.h"

namespace tenon {
namespace {

constexpr std::string_view kSpaceMark = "\xe2\x96\x81";

// The end of the extended grapheme cluster at `begin`.
size_t grapheme_end(std::string_view text, size_t begin) {
  const char* end = text.data() + text.size();
  const char* p = text.data() + begin;
  Char c = decode_char(p, end);
  p += c.bytes;
  utf8proc_int32_t state = 0;
  const auto code = [](const Char& x) { return static_cast<utf8proc_int32_t>(x.valid() ? x.value : 0xfffd); };
  while (p < end) {
    const Char next = decode_char(p, end);
    if (utf8proc_grapheme_break_stateful(code(c), code(next), &state)) break;
    c = next;
    p += c.bytes;
  }
  return static_cast<size_t>(p - text.data());
}

constexpr size_t kGraphemeBytes = 6;  // tokenizers looks up whole graphemes below this size only

}  // namespace

AlignedText normalise_charsmap(const Charsmap& map, const TextView& text, bool tracked) {
  Rewriter out(text, tracked);
  const std::string_view bytes = text.bytes;
  const auto replace = [&](size_t begin, std::string_view with) { out.put(with, out.at(begin)); };
  for (size_t at = 0; at < bytes.size();) {
    const size_t stop = grapheme_end(bytes, at);
    if (stop - at < kGraphemeBytes) {
      if (const auto match = map.shortest(bytes.substr(at, stop - at))) {
        replace(at, match->replacement);
        at = stop;
        continue;
      }
    }
    while (at < stop) {
      const auto next =
          at + static_cast<size_t>(decode_char(bytes.data() + at, bytes.data() + bytes.size()).bytes);
      if (const auto match = map.shortest(bytes.substr(at, next - at))) {
        replace(at, match->replacement);
      } else {
        out.keep(at, next);
      }
      at = next;
    }
  }
  return out.take();
}

AlignedText normalise_nmt(const TextView& text, bool tracked) {
  Rewriter out(text, tracked);
  const char* data = text.bytes.data();
  const char* end = data + text.bytes.size();
  for (const char* p = data; p < end;) {
    const Char c = decode_char(p, end);
    const auto at = static_cast<size_t>(p - data);
    p += c.bytes;
    const uint32_t v = c.value;
    if ((v >= 1 && v <= 8) || v == 0xb || (v >= 0xe && v <= 0x1f) || v == 0x7f || v == 0x8f || v == 0x9f)
      continue;
    const bool space = v == 9 || v == 0xa || v == 0xc || v == 0xd || v == 0x1680 ||
                       (v >= 0x200b && v <= 0x200f) || v == 0x2028 || v == 0x2029 || v == 0x2581 ||
                       v == 0xfeff || v == 0xfffd;
    if (space) {
      out.put(" ", out.at(at));
    } else {
      out.keep(at, at + static_cast<size_t>(c.bytes));
    }
  }
  return out.take();
}

AlignedText normalise_sentencepiece(const NormaliseSentencePiece& step, const TextView& text, bool tracked) {
  const std::string_view space = step.escape_spaces ? kSpaceMark : " ";
  struct Piece {
    std::string_view text;
    size_t bytes = 0;
  };
  const std::string_view bytes = text.bytes;
  const auto next_piece = [&](size_t at) -> Piece {
    const std::string_view rest = bytes.substr(at);
    if (const auto verbatim = step.verbatim.longest(rest); verbatim.value >= 0) {
      return {rest.substr(0, verbatim.bytes), verbatim.bytes};
    }
    if (const auto match = step.map.longest(rest)) return {match->replacement, match->bytes};
    const auto size = static_cast<size_t>(decode_char(rest.data(), rest.data() + rest.size()).bytes);
    return {rest.substr(0, size), size};
  };

  size_t at = 0;
  while (step.remove_extra_spaces && at < bytes.size()) {
    const Piece piece = next_piece(at);
    if (piece.text != " ") break;
    at += piece.bytes;
  }
  Rewriter out(text, tracked);
  if (at == bytes.size()) return out.take();
  if (step.add_prefix && !step.prefix_as_suffix) out.put(space, out.at(at));
  bool after_space = step.remove_extra_spaces;
  while (at < bytes.size()) {
    Piece piece = next_piece(at);
    while (after_space && piece.text.starts_with(' ')) piece.text.remove_prefix(1);
    for (size_t i = 0; i < piece.text.size();) {
      const size_t run = std::min(piece.text.find(' ', i), piece.text.size());
      out.put(piece.text.substr(i, run - i), out.at(at));
      i = run;
      if (i < piece.text.size()) {
        out.put(space, out.at(at));
        ++i;
      }
    }
    if (!piece.text.empty()) after_space = step.remove_extra_spaces && piece.text.ends_with(' ');
    at += piece.bytes;
  }
  AlignedText done = out.take();
  while (step.remove_extra_spaces && done.bytes.ends_with(space)) {
    done.bytes.resize(done.bytes.size() - space.size());
    if (tracked) done.origin.resize(done.bytes.size());
  }
  if (step.add_prefix && step.prefix_as_suffix) {
    done.bytes.append(space);
    if (tracked) done.origin.resize(done.bytes.size(), done.origin.empty() ? Origin{} : done.origin.back());
  }
  return done;
}

}  // namespace tenon
