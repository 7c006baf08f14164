// One conversation as it is trained on beside what a server would give the model to get its last answer: the
// same rendering and the same encoding, compared token by token. What differs here is learned but never asked
// for. Pure; never reads files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/dataset.h"

namespace tenon {

struct TemplateCheck {
  RenderedExample training;
  TokenizedRow tokens;
  std::string prompt;  // up to where the model is to go on
  std::vector<int32_t> prompt_ids;

  // Tokens from the begin that are the same in both.
  int64_t same_tokens = 0;
  // The first token trained on, of the last answer: where generation would begin.
  int64_t answer_token = 0;

  // A server's prompt is exactly what stands before the last answer.
  bool same() const {
    return same_tokens == answer_token && same_tokens == static_cast<int64_t>(prompt_ids.size());
  }
};

// The conversation must be chat and have an answer. Errors: those of render_conversation and of
// tokenize_example; bad_argument (nothing to answer; no token of the answer is trained on).
Result<TemplateCheck> check_template(const Conversation& conversation, const RowSettings& settings);

}  // namespace tenon
