#include "run/model_text.h"

#include <fmt/format.h>

#include "io/write_file.h"

namespace tenon {
namespace {

const ChatTemplateText* find_template(const SpecialTokens& special, std::string_view name) {
  for (const ChatTemplateText& candidate : special.chat_templates)
    if (candidate.name == name) return &candidate;
  return nullptr;
}

}  // namespace

Result<ChatTemplate> read_chat_template(const std::string& path) {
  constexpr int64_t kLargestTemplate = 16 << 20;
  ASSIGN_OR_RETURN(std::string source, read_file(path, kLargestTemplate));
  return ChatTemplate::parse(std::move(source), path);
}

Result<ChatTemplate> choose_chat_template(const Tokenizer& tokenizer, const std::string& model_path,
                                          const std::string& template_path, bool with_tools) {
  if (!template_path.empty()) return read_chat_template(template_path);
  const SpecialTokens& special = tokenizer.special();
  if (special.chat_templates.empty())
    return not_found("the model has no chat template", model_path, "Name one with --template FILE.");
  const ChatTemplateText* chosen = with_tools ? find_template(special, "tool_use") : nullptr;
  if (chosen == nullptr) chosen = find_template(special, "default");
  if (chosen == nullptr && special.chat_templates.size() == 1) chosen = &special.chat_templates[0];
  if (chosen == nullptr) {
    std::string names;
    for (const ChatTemplateText& candidate : special.chat_templates)
      names += (names.empty() ? "" : ", ") + candidate.name;
    return bad_argument(
        fmt::format("the model has several chat templates and none is the default: {}", names), model_path,
        "Put one into a file and name it with --template FILE.");
  }
  return ChatTemplate::parse(chosen->text, fmt::format("{} (chat template)", model_path));
}

}  // namespace tenon
