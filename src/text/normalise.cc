#include "text/normalise.h"

#include <optional>

#include "text/byte_level.h"
#include "text/unicode.h"

namespace tenon {
namespace {

// Each step returns nothing where the text stays as it is.
using Changed = std::optional<AlignedText>;

struct Apply {
  const TextView& text;
  bool tracked;

  Changed operator()(const NormaliseForm& step) const {
    if (is_ascii(text.bytes)) return {};
    return normalise_form(step, text, tracked);
  }

  Changed operator()(const NormaliseReplace& step) const {
    if (step.pattern.is_literal() && !tracked) return replace_literal(step);
    Rewriter out(text, tracked);
    bool any = false;
    // New text stands for the last character it replaces or, where it replaces none, for the one before.
    step.pattern.split(text.bytes, [&](TextRange range, bool is_match) {
      if (!is_match) return out.keep(range.begin, range.end);
      any = true;
      out.put(step.content, range.end > 0 ? out.at(range.end - 1) : Origin{});
    });
    if (!any) return {};
    return out.take();
  }

  Changed replace_literal(const NormaliseReplace& step) const {
    const std::string& from = step.pattern.source();
    size_t at = from.empty() ? std::string_view::npos : text.bytes.find(from);
    if (at == std::string_view::npos) return {};
    AlignedText out;
    out.bytes.reserve(text.bytes.size() + text.bytes.size() / 2);
    size_t done = 0;
    for (; at != std::string_view::npos; at = text.bytes.find(from, done)) {
      out.bytes.append(text.bytes, done, at - done).append(step.content);
      done = at + from.size();
    }
    out.bytes.append(text.bytes, done);
    return out;
  }

  Changed operator()(const NormalisePrepend& step) const {
    if (text.bytes.empty()) return {};
    Rewriter out(text, tracked);
    out.put(step.text, out.at(0));
    out.keep(0, text.bytes.size());
    return out.take();
  }

  Changed operator()(const NormaliseStrip& step) const {
    const CharClasses& classes = CharClasses::get();
    size_t begin = 0;
    size_t end = text.bytes.size();
    while (step.left && begin < end) {
      const Char c = decode_char(text.bytes.data() + begin, text.bytes.data() + end);
      if (!(classes.of(c.value) & kSpace)) break;
      begin += static_cast<size_t>(c.bytes);
    }
    while (step.right && end > begin) {
      const Char c = char_before(text.bytes, end);
      if (!(classes.of(c.value) & kSpace)) break;
      end -= static_cast<size_t>(c.bytes);
    }
    if (begin == 0 && end == text.bytes.size()) return {};
    Rewriter out(text, tracked);
    out.keep(begin, end);
    return out.take();
  }

  Changed operator()(const NormaliseLowercase&) const { return normalise_lowercase(text, tracked); }
  Changed operator()(const NormaliseStripAccents&) const { return normalise_strip_accents(text, tracked); }
  Changed operator()(const NormaliseNmt&) const { return normalise_nmt(text, tracked); }
  Changed operator()(const NormaliseBert& step) const { return normalise_bert(step, text, tracked); }
  Changed operator()(const NormaliseCharsmap& step) const {
    return normalise_charsmap(step.map, text, tracked);
  }
  Changed operator()(const NormaliseSentencePiece& step) const {
    return normalise_sentencepiece(step, text, tracked);
  }

  Changed operator()(const NormaliseBytes&) const {
    Rewriter out(text, tracked);
    for (size_t i = 0; i < text.bytes.size(); ++i) {
      out.put_char(byte_level_char(static_cast<unsigned char>(text.bytes[i])), out.at(i));
    }
    return out.take();
  }
};

}  // namespace

TextView normalise(const Normaliser& steps, const TextView& text, bool tracked, AlignedText& storage) {
  TextView view = text;
  for (const NormaliseStep& step : steps) {
    if (Changed changed = std::visit(Apply{view, tracked}, step)) {
      storage = std::move(*changed);
      view = view_of(storage, text.at_start);
    }
  }
  return view;
}

}  // namespace tenon
