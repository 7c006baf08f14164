// What to know of a tokenizer before tuning, and how two tokenizers differ. Used by `tenon inspect
// tokenizer`.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/json.h"

namespace tenon {

struct TokenizerQuestion {
  std::string path;
  std::string other;                // to compare with; empty: none
  std::optional<std::string> text;  // to compare on, in place of the language samples
};

// The audit, or the comparison where there is another one; "notes" holds what to mind, in sentences.
Result<Json> tokenizer_answer(const TokenizerQuestion& question);

// For people: the facts, then a line for every note.
std::string answer_text(const Json& answer);

}  // namespace tenon
