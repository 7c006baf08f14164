// What a chat template makes of one conversation in training and in serving. Used by `tenon inspect
// template`.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/json.h"

namespace tenon {

struct TemplateQuestion {
  std::string model;          // whose tokenizer and template
  std::string chat_template;  // file; empty is the model's own
  std::string rows;           // a data set or a file with one conversation; empty: an example of two turns
  int64_t row = 0;            // of the data set, from 0
  std::string train_on = "answers";
};

// Facts with the tokens of both texts.
Result<Json> template_answer(const TemplateQuestion& question);

// For people: the facts, a line a token, and what to mind.
std::string template_text(const Json& answer);

}  // namespace tenon
