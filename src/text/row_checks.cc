#include "text/row_checks.h"

#include "base/json.h"

namespace tenon {
namespace {

std::string_view text_at(const Json& message, const char* key) {
  const auto it = message.find(key);
  return it != message.end() && it->is_string() ? std::string_view(it->text()) : std::string_view();
}

bool has_word(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") != std::string_view::npos;
}

bool is_empty_answer(const Json& message) {
  if (text_at(message, "role") != "assistant" || message.contains("tool_calls")) return false;
  for (const char* key : {"content", "reasoning_content", "reasoning", "thinking"})
    if (has_word(text_at(message, key))) return false;
  return true;
}

// The three marks of UTF-8 taken for a one-byte encoding, in UTF-8 again: A-tilde or A-circumflex before a
// character from U+0080 to U+00BF, and a-circumflex before the euro sign.
bool has_mojibake(std::string_view text) {
  for (size_t at = text.find('\xc3'); at != std::string_view::npos; at = text.find('\xc3', at + 1)) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("\xc3\xa2\xe2\x82\xac")) return true;
    if (rest.starts_with("\xc3\x83\xc2") || rest.starts_with("\xc3\x82\xc2")) return true;
  }
  return false;
}

bool has_control(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f) return true;
  }
  return false;
}

}  // namespace

RowTrouble check_text(std::string_view text) {
  RowTrouble trouble;
  trouble.carriage_return = text.find('\r') != std::string_view::npos;
  trouble.byte_order_mark = text.find("\xef\xbb\xbf") != std::string_view::npos;
  trouble.mojibake = has_mojibake(text);
  trouble.replacement = text.find("\xef\xbf\xbd") != std::string_view::npos;
  trouble.control = has_control(text);
  return trouble;
}

bool roles_in_order(const Conversation& conversation) {
  std::string_view before = "system";
  for (const Json& message : conversation.variables->at("messages")) {
    std::string_view role = text_at(message, "role");
    if (role == "developer") role = "system";
    const bool fits = role == "system"      ? before == "system"
                      : role == "user"      ? before == "system" || before == "assistant"
                      : role == "assistant" ? before == "user" || before == "tool"
                                            : role == "tool" && (before == "assistant" || before == "tool");
    if (!fits) return false;
    before = role;
  }
  return before == "assistant";
}

std::string words_of(const Conversation& conversation) {
  if (!conversation.is_chat()) return conversation.prompt + "\n" + conversation.completion;
  std::string words;
  for (const Json& message : conversation.variables->at("messages")) {
    if (text_at(message, "role") == "system") continue;
    words += text_at(message, "content");
    words += '\n';
  }
  return words;
}

RowTrouble check_row(const Conversation& conversation) {
  if (!conversation.is_chat()) {
    RowTrouble trouble = check_text(words_of(conversation));
    trouble.empty_answer = !has_word(conversation.completion);
    return trouble;
  }
  std::string text;
  bool empty = false;
  for (const Json& message : conversation.variables->at("messages")) {
    for (const char* key : {"content", "reasoning_content"}) {
      text += text_at(message, key);
      text += '\n';
    }
    empty |= is_empty_answer(message);
  }
  RowTrouble trouble = check_text(text);
  trouble.empty_answer = empty;
  trouble.roles = !roles_in_order(conversation);
  return trouble;
}

}  // namespace tenon
