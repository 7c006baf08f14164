#include "text/pretokenise.h"

#include <optional>
#include <span>

#include "text/byte_level.h"

namespace tenon {
namespace {

using Sink = FunctionRef<void(const TextView&)>;

// Joins matches and the stretches between them as the behaviour says.
class SplitJoiner {
 public:
  SplitJoiner(SplitBehaviour behaviour, const TextView& text, Sink out)
      : behaviour_(behaviour), text_(text), out_(out) {}

  void add(TextRange range, bool is_match) {
    switch (behaviour_) {
      case SplitBehaviour::isolated:
        emit(range);
        break;
      case SplitBehaviour::removed:
        if (!is_match) emit(range);
        break;
      case SplitBehaviour::contiguous:
        join(range, is_match == last_is_match_);
        break;
      case SplitBehaviour::merged_with_previous:
        join(range, is_match && !last_is_match_);
        break;
      case SplitBehaviour::merged_with_next:
        join(range, !is_match && last_is_match_);
        break;
    }
    last_is_match_ = is_match;
  }

  void finish() {
    if (held_) emit(*held_);
    held_.reset();
  }

 private:
  void emit(TextRange range) {
    if (range.begin < range.end) out_(text_.part(range.begin, range.end));
  }
  void join(TextRange range, bool to_held) {
    if (held_ && to_held) {
      held_->end = range.end;
      return;
    }
    finish();
    held_ = range;
  }

  SplitBehaviour behaviour_;
  const TextView& text_;
  Sink out_;
  std::optional<TextRange> held_;
  bool last_is_match_ = false;
};

bool matches(const PretokeniseChars& step, const Char& c, const CharClasses& classes) {
  if (classes.of(c.value) & step.classes) return true;
  if (c.value == step.character) return true;
  return step.ascii_punctuation && c.value < 128 && classes.of(c.value) & (kPunctuation | kSymbol);
}

struct Apply {
  std::span<const PretokeniseStep> rest;  // the steps after this one
  const TextView& text;
  bool tracked;
  Sink word;

  void next(const TextView& piece) const {
    if (piece.bytes.empty()) return;
    if (rest.empty()) return word(piece);
    std::visit(Apply{rest.subspan(1), piece, tracked, word}, rest[0]);
  }

  void operator()(const PretokeniseSplit& step) const {
    const bool keeps_all = step.behaviour == SplitBehaviour::isolated ||
                           (step.behaviour == SplitBehaviour::removed && step.invert);
    if (const WordScan* words = step.pattern.words(); words && keeps_all) {
      for (size_t at = 0; at < text.bytes.size();) {
        const size_t end = scan_word(*words, text.bytes, at);
        next(text.part(at, end));
        at = end;
      }
      return;
    }
    const auto to_next = [&](const TextView& piece) { next(piece); };
    SplitJoiner joiner(step.behaviour, text, to_next);
    step.pattern.split(text.bytes,
                       [&](TextRange range, bool is_match) { joiner.add(range, is_match != step.invert); });
    joiner.finish();
  }

  void operator()(const PretokeniseChars& step) const {
    const CharClasses& classes = CharClasses::get();
    const auto to_next = [&](const TextView& piece) { next(piece); };
    SplitJoiner joiner(step.behaviour, text, to_next);
    const char* data = text.bytes.data();
    const char* end = data + text.bytes.size();
    size_t done = 0;
    for (const char* p = data; p < end;) {
      const Char c = decode_char(p, end);
      const auto at = static_cast<size_t>(p - data);
      p += c.bytes;
      if (!matches(step, c, classes)) continue;
      if (at > done) joiner.add({done, at}, false);
      done = at + static_cast<size_t>(c.bytes);
      joiner.add({at, done}, true);
    }
    if (done < text.bytes.size()) joiner.add({done, text.bytes.size()}, false);
    joiner.finish();
  }

  void operator()(const PretokeniseWhitespace&) const {
    const CharClasses& classes = CharClasses::get();
    const auto kind_at = [&](size_t at, size_t& after) {
      const Char c = decode_char(text.bytes.data() + at, text.bytes.data() + text.bytes.size());
      after = at + static_cast<size_t>(c.bytes);
      const CharClass kinds = classes.of(c.value);
      return kinds & kWord ? 1 : kinds & kSpace ? 0 : 2;
    };
    for (size_t at = 0; at < text.bytes.size();) {
      size_t end = at;
      const int kind = kind_at(at, end);
      for (size_t after = end; end < text.bytes.size() && kind_at(end, after) == kind;) end = after;
      if (kind != 0) next(text.part(at, end));
      at = end;
    }
  }

  void operator()(const PretokeniseFixedLength& step) const {
    const char* data = text.bytes.data();
    const char* end = data + text.bytes.size();
    for (const char* p = data; p < end;) {
      const char* begin = p;
      for (int64_t i = 0; i < step.chars && p < end; ++i) p += decode_char(p, end).bytes;
      next(text.part(static_cast<size_t>(begin - data), static_cast<size_t>(p - data)));
    }
  }

  void operator()(const PretokeniseMetaspace& step) const {
    Rewriter out(text, tracked);
    using Prepend = PretokeniseMetaspace::Prepend;
    const bool marked = text.bytes.starts_with(' ') || text.bytes.starts_with(step.mark);
    if (!marked && (step.prepend == Prepend::always || (step.prepend == Prepend::first && text.at_start))) {
      out.put(step.mark, out.at(0));
    }
    for (size_t at = 0; at < text.bytes.size();) {
      const size_t space = std::min(text.bytes.find(' ', at), text.bytes.size());
      out.keep(at, space);
      at = space;
      if (at < text.bytes.size()) out.put(step.mark, out.at(at++));
    }
    const AlignedText marked_text = out.take();
    const TextView view = view_of(marked_text, text.at_start);
    if (!step.split) return next(view);
    for (size_t at = 0; at < view.bytes.size();) {
      const size_t end = std::min(view.bytes.find(step.mark, at + 1), view.bytes.size());
      next(view.part(at, end));
      at = end;
    }
  }

  void operator()(const PretokeniseByteLevel& step) const {
    AlignedText spaced;
    TextView view = text;
    if (step.add_prefix_space && !text.bytes.starts_with(' ')) {
      Rewriter out(text, tracked);
      out.put(" ", out.at(0));
      out.keep(0, text.bytes.size());
      spaced = out.take();
      view = view_of(spaced, text.at_start);
    }
    if (!step.map_bytes) return next(view);
    Rewriter out(view, tracked);
    for (size_t i = 0; i < view.bytes.size(); ++i) {
      out.put_char(byte_level_char(static_cast<unsigned char>(view.bytes[i])), out.at(i));
    }
    const AlignedText mapped = out.take();
    next(view_of(mapped, text.at_start));
  }
};

}  // namespace

void pretokenise(const Pretokeniser& steps, const TextView& text, bool tracked, Sink word) {
  if (text.bytes.empty()) return;
  if (steps.empty()) return word(text);
  std::visit(Apply{std::span(steps).subspan(1), text, tracked, word}, steps[0]);
}

}  // namespace tenon
