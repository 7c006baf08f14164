#include "text/dataset_tokens.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"

namespace tenon {
namespace {

bool is_end_token(const SpecialTokens& special, int32_t id) {
  return std::find(special.eos.begin(), special.eos.end(), id) != special.eos.end();
}

bool is_white(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// Which tokens are trained on. Both lists are in text order.
std::vector<char> trained_flags(const std::vector<TokenSpan>& tokens, const RenderedExample& rendered) {
  std::vector<char> flags(tokens.size(), 0);
  size_t at = 0;
  for (size_t t = 0; t < tokens.size(); ++t) {
    while (at < rendered.trained.size() && rendered.trained[at].end <= tokens[t].begin) ++at;
    if (at == rendered.trained.size()) break;
    flags[t] = tokens[t].begin >= rendered.trained[at].begin && tokens[t].end > tokens[t].begin;
  }
  return flags;
}

// In each answer, what follows a token that ends a generation, and white space after the last special token.
void untrain_after_end(const std::vector<TokenSpan>& tokens, const RenderedExample& rendered,
                       const Tokenizer& tokenizer, std::vector<char>& flags) {
  size_t t = 0;
  for (const TextSpan& span : rendered.trained) {
    while (t < tokens.size() && tokens[t].begin < span.begin) ++t;
    std::optional<size_t> last_special;
    bool ended = false;
    for (; t < tokens.size() && tokens[t].begin < span.end; ++t) {
      if (ended) flags[t] = 0;
      ended = ended || is_end_token(tokenizer.special(), tokens[t].id);
      if (tokenizer.is_special(tokens[t].id)) last_special = t;
    }
    if (!last_special) continue;
    const size_t rest = static_cast<size_t>(tokens[*last_special].end);
    const size_t end = static_cast<size_t>(span.end);
    if (rest >= end || !is_white(std::string_view(rendered.text).substr(rest, end - rest))) continue;
    for (size_t after = *last_special + 1; after < t; ++after) flags[after] = 0;
  }
}

// Exactly one begin token and, where the tokenizer has one, an end token.
void complete_plain(std::vector<TokenSpan>& tokens, std::vector<char>& flags, const RenderedExample& rendered,
                    const SpecialTokens& special) {
  if (tokens.size() >= 2 && special.bos && tokens[0].id == *special.bos && tokens[1].id == *special.bos) {
    tokens.erase(tokens.begin());
    flags.erase(flags.begin());
  }
  const int64_t size = static_cast<int64_t>(rendered.text.size());
  if (rendered.continues) return;
  const bool end_trained = !rendered.trained.empty() && rendered.trained.back().end == size;
  if (!special.eos.empty() && (tokens.empty() || !is_end_token(special, tokens.back().id))) {
    tokens.push_back({special.eos.front(), size, size});
    flags.push_back(0);
  }
  if (!tokens.empty() && is_end_token(special, tokens.back().id) && tokens.back().begin == size) {
    flags.back() = end_trained;
  }
}

// The bytes of the tokens that count: nothing predicts the first one.
std::vector<TextSpan> trained_bytes(const std::vector<TokenSpan>& tokens, const std::vector<char>& flags) {
  std::vector<TextSpan> spans;
  for (size_t t = 1; t < tokens.size(); ++t) {
    if (!flags[t] || tokens[t].begin == tokens[t].end) continue;
    if (!spans.empty() && spans.back().end >= tokens[t].begin) {
      spans.back().end = tokens[t].end;
    } else {
      spans.push_back({tokens[t].begin, tokens[t].end});
    }
  }
  return spans;
}

}  // namespace

std::optional<TooLong> too_long_from_name(std::string_view name) {
  if (name == "error") return TooLong::error;
  if (name == "cut") return TooLong::cut;
  if (name == "skip") return TooLong::skip;
  return std::nullopt;
}

Result<TokenizedRow> tokenize_example(const RenderedExample& rendered, const TokenSettings& settings) {
  CHECK(settings.tokenizer && settings.max_tokens >= 1);
  const Tokenizer& tokenizer = *settings.tokenizer;
  std::vector<TokenSpan> tokens =
      tokenizer.encode_spans(rendered.text, {.add_special = rendered.plain(), .parse_special = true});
  std::vector<char> flags = trained_flags(tokens, rendered);
  if (rendered.plain()) {
    complete_plain(tokens, flags, rendered, tokenizer.special());
  } else if (rendered.mask != MaskSource::whole_text) {
    untrain_after_end(tokens, rendered, tokenizer, flags);
  }

  TokenizedRow row;
  row.full_tokens = static_cast<int64_t>(tokens.size());
  if (row.full_tokens > settings.max_tokens) {
    if (settings.too_long == TooLong::error) {
      return bad_argument("the row has " + std::to_string(row.full_tokens) +
                              " tokens, more than the limit of " + std::to_string(settings.max_tokens),
                          {}, "Raise the limit, or let long rows be cut or skipped (--too-long cut|skip).");
    }
    row.cut = settings.too_long == TooLong::cut;
    row.skipped = !row.cut;
    if (row.skipped) return row;
    tokens.resize(static_cast<size_t>(settings.max_tokens));
  }
  row.trained = trained_bytes(tokens, flags);
  row.example.ids.reserve(tokens.size());
  row.example.labels.reserve(tokens.size());
  for (size_t t = 0; t < tokens.size(); ++t) {
    row.example.ids.push_back(tokens[t].id);
    row.example.labels.push_back(flags[t] ? tokens[t].id : kUntrained);
  }
  return row;
}

}  // namespace tenon
