// From rendered text to token ids and labels. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/conversation_render.h"
#include "text/packing.h"
#include "text/tokenizer.h"

namespace tenon {

// What happens to an example of more than max_tokens.
enum class TooLong { error, cut, skip };

std::optional<TooLong> too_long_from_name(std::string_view name);  // "error", "cut", "skip"

struct TokenSettings {
  const Tokenizer* tokenizer = nullptr;
  int32_t max_tokens = 0;  // >= 1
  TooLong too_long = TooLong::error;
};

struct TokenizedRow {
  TokenizedExample example;  // empty where skipped
  // The bytes of the rendered text that the trained tokens stand for, neighbours joined.
  std::vector<TextSpan> trained;
  int64_t full_tokens = 0;  // before cutting
  bool cut = false;
  bool skipped = false;
};

// A token is trained on if the first byte it stands for lies in a trained span. So a token that reaches from
// the prompt into the answer is context, and where the places of tokens come from is the tokenizer's own
// account of the whole text, never a second encoding of a part.
//
// Text from a template is encoded as it stands: its special tokens are those the template wrote, none is
// added. In an answer, nothing after a token that ends a generation is trained on, nor white space after its
// last special token (the newline some templates write after the end-of-turn token): no server ever asks for
// it. Plain text gets what the tokenizer adds, and the end-of-sequence token at its end if it has one and the
// text does not end in it or go on in the next row; that token is trained on if the last byte is. A text that
// spells the begin token gets no second one.
//
// A cut example keeps its first max_tokens tokens; nothing is put in place of the lost end.
// Error: bad_argument (too long and TooLong::error).
Result<TokenizedRow> tokenize_example(const RenderedExample& rendered, const TokenSettings& settings);

}  // namespace tenon
