#include "run/prompt.h"

#include "base/json.h"
#include "text/conversation_render.h"

namespace tenon {

Result<std::vector<int32_t>> chat_prompt(const ModelText& text, const Json& messages) {
  if (!text.chat_template) {
    return bad_argument("the model has no chat template", "--template",
                        "Name a .jinja file, or give the text as it is with --raw.");
  }
  RenderSettings settings{.chat_template = &*text.chat_template, .tokenizer = &text.tokenizer};
  settings.options = text.render;
  ASSIGN_OR_RETURN(const Rendered rendered, render_prompt(messages, settings));
  return text.tokenizer.encode(rendered.text, {.add_special = false});
}

Result<std::vector<int32_t>> user_prompt(const ModelText& text, const std::string& content) {
  return chat_prompt(text, Json::array({{{"role", "user"}, {"content", content}}}));
}

}  // namespace tenon
