// Preference rows: each answer becomes a conversation of its own, read as any other row is.
#include <array>
#include <utility>

#include "base/json.h"
#include "text/conversation.h"

namespace tenon {
namespace {

bool has_list(const Json& row, const char* key) {
  const auto it = row.find(key);
  return it != row.end() && it->is_array();
}

// The turns before the answers.
const char* turns_key(const Json& row) {
  for (const char* key : {"messages", "conversations", "prompt"})
    if (has_list(row, key)) return key;
  return nullptr;
}

// Whether a list of messages is the answer alone and not the whole conversation.
bool is_reply(const Json& messages) {
  if (messages.empty() || !messages[0].is_object()) return false;
  const auto role = messages[0].find("role");
  return role != messages[0].end() && *role == "assistant";
}

// The row of an ordinary format that holds this answer.
Result<Json> row_with_answer(const Json& row, const char* side) {
  const Json& answer = row.at(side);
  Json out = row;
  out.erase("chosen");
  out.erase("rejected");
  const char* turns = turns_key(row);
  if (answer.is_string()) {
    if (turns) {
      const bool is_sharegpt = !row.at(turns).empty() && row.at(turns)[0].contains("from");
      out[turns].push_back(is_sharegpt ? Json{{"from", "gpt"}, {"value", answer}}
                                       : Json{{"role", "assistant"}, {"content", answer}});
    } else if (row.contains("instruction")) {
      out["output"] = answer;
    } else {
      out["completion"] = answer;
    }
  } else if (answer.is_object() && turns) {
    out[turns].push_back(answer);
  } else if (answer.is_array() && turns && is_reply(answer)) {
    for (const Json& message : answer) out[turns].push_back(message);
  } else if (answer.is_array()) {
    for (const char* copy : {"prompt", "messages", "conversations"}) out.erase(copy);
    out["messages"] = answer;
    return out;
  } else {
    return bad_file("the answer is neither text, a message nor a list of messages", side);
  }
  if (turns && std::string_view(turns) == "prompt") {
    out["messages"] = std::move(out["prompt"]);
    out.erase("prompt");
  }
  return out;
}

Result<Conversation> read_answer(Json row) {
  ASSIGN_OR_RETURN(const RowFormat format, detect_row_format(row));
  return parse_conversation(std::move(row), format);
}

}  // namespace

Result<Preference> parse_preference(Json row, RowFormat format) {
  CHECK(format == RowFormat::preference_pair || format == RowFormat::preference_label);
  Preference out;
  if (format == RowFormat::preference_label) {
    out.label = row.at("label").get<bool>();
    row.erase("label");
    ASSIGN_OR_RETURN(out.chosen, read_answer(std::move(row)));
    return out;
  }
  out.is_pair = true;
  for (const auto& [side, conversation] :
       {std::pair{"chosen", &out.chosen}, std::pair{"rejected", &out.rejected}}) {
    ASSIGN_OR_RETURN(Json answer, row_with_answer(row, side));
    Result<Conversation> read = read_answer(std::move(answer));
    if (!read.ok()) return std::move(read).error().within(side);
    *conversation = std::move(*read);
  }
  return out;
}

}  // namespace tenon
