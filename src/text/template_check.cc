#include "text/template_check.h"

#include <algorithm>

#include "base/json.h"

namespace tenon {
namespace {

// The messages before the last answer that is trained on.
Result<Json> messages_before_answer(const Conversation& conversation) {
  const Json& messages = conversation.variables->at("messages");
  for (size_t i = messages.size(); i > static_cast<size_t>(conversation.first_answer_message); --i) {
    if (!is_trainable_answer(messages[i - 1])) continue;
    Json before = Json::array();
    for (size_t k = 0; k + 1 < i; ++k) before.push_back(messages[k]);
    return before;
  }
  return bad_argument("the conversation has no answer of an assistant");
}

// The begin of the last run of trained tokens; -1 where there is none.
int64_t last_trained_run(const std::vector<int32_t>& labels) {
  int64_t begin = -1;
  for (size_t t = 0; t < labels.size(); ++t) {
    if (labels[t] != kUntrained && (t == 0 || labels[t - 1] == kUntrained)) begin = static_cast<int64_t>(t);
  }
  return begin;
}

}  // namespace

Result<TemplateCheck> check_template(const Conversation& conversation, const RowSettings& settings) {
  CHECK(conversation.is_chat() && settings.tokens.tokenizer);
  TemplateCheck check;
  ASSIGN_OR_RETURN(const Json before, messages_before_answer(conversation));
  ASSIGN_OR_RETURN(check.training, render_conversation(conversation, settings.render));
  ASSIGN_OR_RETURN(check.tokens, tokenize_example(check.training, settings.tokens));

  Json variables = settings.render.extra_variables ? *settings.render.extra_variables : Json::object();
  variables.update(*conversation.variables);
  RenderSettings prompt = settings.render;
  prompt.extra_variables = &variables;
  ASSIGN_OR_RETURN(Rendered rendered, render_prompt(before, prompt));
  check.prompt = std::move(rendered.text);
  check.prompt_ids = settings.tokens.tokenizer->encode(check.prompt, {.add_special = false});

  const std::vector<int32_t>& ids = check.tokens.example.ids;
  check.same_tokens =
      std::mismatch(ids.begin(), ids.end(), check.prompt_ids.begin(), check.prompt_ids.end()).first -
      ids.begin();
  check.answer_token = last_trained_run(check.tokens.example.labels);
  if (check.answer_token < 0) return bad_argument("no token of the answer is trained on");
  return check;
}

}  // namespace tenon
