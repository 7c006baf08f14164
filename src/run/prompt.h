// From a conversation to the token ids that a server gives the model: the same rendering and encoding as in
// training.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "run/model.h"

namespace tenon {

// Ids of the rendered messages with the generation prompt. Special tokens are those that the template writes.
// Errors: bad_argument where the model has no template (naming --template), or the template refuses.
Result<std::vector<int32_t>> chat_prompt(const ModelText& text, const Json& messages);

// One user message.
Result<std::vector<int32_t>> user_prompt(const ModelText& text, const std::string& content);

}  // namespace tenon
