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

void trim(TokenSpan& span, std::string_view text, bool keep_one) {
  int64_t leading = 0;
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end; ++leading) {
    const Char c = decode_char(p, end);
    if (!is_space(c.value)) break;
    p += c.bytes;
  }
  int64_t trailing = 0;
  for (size_t at = text.size(); at > 0; ++trailing) {
    const Char c = char_before(text, at);
    if (!is_space(c.value)) break;
    at -= static_cast<size_t>(c.bytes);
  }
  if (leading > 0 && keep_one) --leading;
  span.begin = std::min(span.begin + leading, span.end);
  if (span.end >= trailing) span.end = std::max(span.end - trailing, span.begin);
}

}  // namespace

void postprocess(const Postprocessor& steps, bool add_special, FunctionRef<std::string_view(int32_t)> token,
                 TokenSink& tokens) {
  for (const PostprocessStep& step : steps) {
    if (const auto* wrap = std::get_if<PostprocessTemplate>(&step)) {
      apply(*wrap, add_special, tokens);
      continue;
    }
    const auto& rule = std::get<PostprocessTrim>(step);
    for (size_t i = 0; i < tokens.spans.size(); ++i) {
      TokenSpan& span = tokens.spans[i];
      trim(span, token(span.id), rule.add_prefix_space && (i == 0 || span.begin == 0));
    }
  }
}

}  // namespace tenon
