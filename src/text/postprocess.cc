#include "text/postprocess.h"

#include <algorithm>

#include "text/unicode.h"

namespace tenon {
namespace {

constexpr uint32_t kSpaceChar = 0x120;  // the byte-level spelling of a space

bool is_space(uint32_t c) {
  return c == kSpaceChar || CharClasses::get().of(c) & kSpace;
}

void apply(const PostprocessTemplate& step, bool add_special, TokenSink& tokens) {
  TokenSink out;
  out.tracked = tokens.tracked;
  out.ids.reserve(tokens.ids.size() + step.items.size());
  for (const auto& item : step.items) {
    if (!item) {
      if (out.ids.empty() && step.items.size() == 1) return;
      out.ids.insert(out.ids.end(), tokens.ids.begin(), tokens.ids.end());
      out.spans.insert(out.spans.end(), tokens.spans.begin(), tokens.spans.end());
    } else if (add_special) {
      out.ids.push_back(*item);
      if (out.tracked) out.spans.push_back({*item, 0, 0});
    }
  }
  tokens = std::move(out);
}

int64_t count_leading(std::string_view text) {
  int64_t count = 0;
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end; ++count) {
    const Char c = decode_char(p, end);
    if (!is_space(c.value)) break;
    p += c.bytes;
  }
  return count;
}

int64_t count_trailing(std::string_view text) {
  int64_t count = 0;
  for (size_t at = text.size(); at > 0; ++count) {
    const Char c = char_before(text, at);
    if (!is_space(c.value)) break;
    at -= static_cast<size_t>(c.bytes);
  }
  return count;
}

// Takes as many characters off the span as the token has spaces at its ends.
void trim(TokenSpan& span, std::string_view text, std::string_view input, bool keep_one) {
  const int64_t leading = count_leading(text);
  for (int64_t i = keep_one ? 1 : 0; i < leading && span.begin < span.end; ++i) {
    span.begin += decode_char(input.data() + span.begin, input.data() + input.size()).bytes;
  }
  span.begin = std::min(span.begin, span.end);
  int64_t end = span.end;
  for (int64_t i = count_trailing(text); i > 0; --i) {
    if (end == 0) return;  // more spaces than text: they were put there, and nothing goes
    end -= char_before(input, static_cast<size_t>(end)).bytes;
  }
  span.end = std::max(end, span.begin);
}

}  // namespace

void postprocess(const Postprocessor& steps, bool add_special, std::string_view input,
                 FunctionRef<std::string_view(int32_t)> token, TokenSink& tokens) {
  for (const PostprocessStep& step : steps) {
    if (const auto* wrap = std::get_if<PostprocessTemplate>(&step)) {
      apply(*wrap, add_special, tokens);
      continue;
    }
    const auto& rule = std::get<PostprocessTrim>(step);
    for (size_t i = 0; i < tokens.spans.size(); ++i) {
      TokenSpan& span = tokens.spans[i];
      std::string_view text = token(span.id);
      if (text.empty()) {
        text = input.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin));
      }
      trim(span, text, input, rule.add_prefix_space && (i == 0 || span.begin == 0));
    }
  }
}

}  // namespace tenon
