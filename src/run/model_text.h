// Which chat template a model's conversations go through: the one that a user names, or the model's own. A
// model without one is an error, never a guess.
#pragma once

#include <string>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace tenon {

// The template in the file `template_path`, or where that is empty the tokenizer's own: of several the one
// named "tool_use" where tools are given, else "default", as transformers chooses (get_chat_template).
// `model_path` is what errors call the model. Errors: not_found (no template, with what to do; no such file),
// bad_argument (several and none of those names), and those of ChatTemplate::parse().
Result<ChatTemplate> choose_chat_template(const Tokenizer& tokenizer, const std::string& model_path,
                                          const std::string& template_path, bool with_tools);

// A template file (UTF-8).
Result<ChatTemplate> read_chat_template(const std::string& path);

}  // namespace tenon
