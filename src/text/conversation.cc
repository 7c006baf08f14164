#include "text/conversation.h"

#include <array>
#include <optional>
#include <utility>

#include "base/json.h"

namespace tenon {
namespace {

bool has_string(const Json& row, const char* key) {
  const auto it = row.find(key);
  return it != row.end() && it->is_string();
}

bool has_list(const Json& row, const char* key) {
  const auto it = row.find(key);
  return it != row.end() && it->is_array();
}

bool is_filled_string(const Json& row, const char* key) {
  return has_string(row, key) && !row.at(key).text().empty();
}

// The first of the keys that the row has as a string.
const char* first_string_key(const Json& row, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (has_string(row, key)) return key;
  return nullptr;
}

constexpr std::initializer_list<const char*> kOutputKeys = {"output", "response"};
constexpr std::initializer_list<const char*> kInputKeys = {"input", "context"};
constexpr std::initializer_list<const char*> kCompletionKeys = {"completion", "response"};

std::string place(std::string_view list, size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

Json message(std::string_view role, Json content) {
  return Json{{"role", role}, {"content", std::move(content)}};
}

void parse_call_arguments(Json& message) {
  if (!has_list(message, "tool_calls")) return;
  for (Json& call : message["tool_calls"]) {
    if (!call.is_object()) continue;
    Json& function = call.contains("function") ? call["function"] : call;
    if (!function.is_object() || !has_string(function, "arguments")) continue;
    Json arguments = Json::parse_or_null(function["arguments"].text());
    if (arguments.is_object()) function["arguments"] = std::move(arguments);
  }
}

// A call written as text {"name", "arguments"} or a list of those.
Result<Json> call_message(const std::string& text, const std::string& where) {
  Json calls = Json::parse_or_null(text);
  if (calls.is_object()) calls = Json::array({std::move(calls)});
  if (!calls.is_array()) return bad_file("a function call is not JSON", where);
  Json tool_calls = Json::array();
  for (Json& call : calls) {
    if (!call.is_object() || !has_string(call, "name")) return bad_file("a function call has no name", where);
    tool_calls.push_back(Json{{"type", "function"}, {"function", std::move(call)}});
  }
  Json out = message("assistant", "");
  out["tool_calls"] = std::move(tool_calls);
  parse_call_arguments(out);
  return out;
}

void append_line(std::string& text, std::string_view line) {
  if (!text.empty()) text += '\n';
  text += line;
}

// Content that is a list of parts, taken apart: text parts become the content, reasoning parts the
// reasoning_content, tool_call parts the tool_calls.
Status flatten_content(Json& entry, const std::string& where) {
  Json content = std::move(entry["content"]);
  if (content.is_array()) {
    std::string text, reasoning;
    for (size_t i = 0; i < content.size(); ++i) {
      const Json& part = content[i];
      const std::string place_of_part = where + "." + place("content", i);
      const char* key = part.is_object() ? first_string_key(part, {"text", "value"}) : nullptr;
      const Json& holder = key ? part.at(key) : part;
      const std::string words = holder.is_string() ? holder.get<std::string>() : std::string();
      const std::string type = part.is_string()                  ? "text"
                               : key && has_string(part, "type") ? part.at("type").get<std::string>()
                                                                 : "";
      if (type == "text") {
        append_line(text, words);
      } else if (type == "reasoning") {
        append_line(reasoning, words);
      } else if (type == "tool_call") {
        ASSIGN_OR_RETURN(Json call, call_message(words, place_of_part));
        for (Json& one : call["tool_calls"]) entry["tool_calls"].push_back(std::move(one));
      } else {
        return unsupported("a part of the content is not text", place_of_part,
                           "Tenon trains on text; take out images, sound and other parts.");
      }
    }
    if (!reasoning.empty()) entry["reasoning_content"] = std::move(reasoning);
    content = std::move(text);
  }
  if (!content.is_string() && !content.is_null()) {
    return bad_file("content is neither text nor a list of parts", where);
  }
  entry["content"] = std::move(content);
  return {};
}

Status normalise_messages(Json& messages, std::string_view list) {
  if (!messages.is_array() || messages.empty()) return bad_file("there are no messages", std::string(list));
  for (size_t i = 0; i < messages.size(); ++i) {
    Json& entry = messages[i];
    const std::string where = place(list, i);
    if (!entry.is_object()) return bad_file("a message is not an object", where);
    if (!is_filled_string(entry, "role")) return bad_file("a message has no role", where);
    if (!entry.contains("content")) {
      if (!has_list(entry, "tool_calls")) return bad_file("a message has no content", where);
      entry["content"] = "";
    }
    RETURN_IF_ERROR(flatten_content(entry, where));
    parse_call_arguments(entry);
  }
  return {};
}

// Tools may be a list or the JSON of one in a string.
Status take_tools(Json& row, Json& variables) {
  const auto it = row.find("tools");
  if (it == row.end() || it->is_null()) return {};
  Json tools = std::move(*it);
  if (tools.is_string()) {
    const std::string text = tools.get<std::string>();
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return {};
    tools = Json::parse_or_null(text);
    if (tools.is_null()) return bad_file("the string is not JSON", "tools");
  }
  if (!tools.is_array()) return bad_file("tools are not a list", "tools");
  if (!tools.empty()) variables["tools"] = std::move(tools);
  return {};
}

Status take_extras(Json& row, Json& variables) {
  RETURN_IF_ERROR(take_tools(row, variables));
  if (has_list(row, "documents")) variables["documents"] = std::move(row["documents"]);
  if (const auto it = row.find("chat_template_kwargs"); it != row.end() && !it->is_null()) {
    if (!it->is_object())
      return bad_file("the template's variables are not an object", "chat_template_kwargs");
    for (auto& [key, value] : it->items()) variables[key] = std::move(value);
  }
  return {};
}

struct RoleName {
  std::string_view from, role;
};
constexpr std::array<RoleName, 14> kRoles = {{{"human", "user"},
                                              {"user", "user"},
                                              {"gpt", "assistant"},
                                              {"assistant", "assistant"},
                                              {"model", "assistant"},
                                              {"bot", "assistant"},
                                              {"chatgpt", "assistant"},
                                              {"system", "system"},
                                              {"function_call", "call"},
                                              {"tool_call", "call"},
                                              {"observation", "tool"},
                                              {"function_response", "tool"},
                                              {"tool_response", "tool"},
                                              {"tool", "tool"}}};

Result<Json> sharegpt_messages(Json& row) {
  Json messages = Json::array();
  if (is_filled_string(row, "system")) messages.push_back(message("system", std::move(row["system"])));
  Json& turns = row["conversations"];
  for (size_t i = 0; i < turns.size(); ++i) {
    const std::string where = place("conversations", i);
    Json& turn = turns[i];
    if (!turn.is_object() || !has_string(turn, "from") || !has_string(turn, "value")) {
      return bad_file("a turn does not have from and value as text", where);
    }
    const std::string from = turn["from"].get<std::string>();
    std::string_view role;
    for (const RoleName& name : kRoles)
      if (name.from == from) role = name.role;
    if (role.empty()) {
      return bad_file("unknown speaker '" + from + "'", where,
                      "Known: human, gpt, system, function_call, observation, and the roles of messages.");
    }
    if (role == "call") {
      ASSIGN_OR_RETURN(Json call, call_message(turn["value"].text(), where));
      messages.push_back(std::move(call));
    } else {
      messages.push_back(message(role, std::move(turn["value"])));
    }
  }
  if (turns.empty()) return bad_file("there are no turns", "conversations");
  return messages;
}

Result<Json> instruction_messages(Json& row) {
  Json messages = Json::array();
  if (is_filled_string(row, "system")) messages.push_back(message("system", std::move(row["system"])));
  if (const auto it = row.find("history"); it != row.end() && !it->is_null()) {
    if (!it->is_array()) return bad_file("history is not a list", "history");
    for (size_t i = 0; i < it->size(); ++i) {
      Json& pair = (*it)[i];
      if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
        return bad_file("a turn is not a list of a question and an answer", place("history", i));
      }
      messages.push_back(message("user", std::move(pair[0])));
      messages.push_back(message("assistant", std::move(pair[1])));
    }
  }
  const char* output = first_string_key(row, kOutputKeys);
  if (!has_string(row, "instruction") || !output) {
    return bad_file("instruction and output are not both text", "instruction");
  }
  std::string question = row["instruction"].get<std::string>();
  if (const char* input = first_string_key(row, kInputKeys); input && is_filled_string(row, input)) {
    if (!question.empty()) question += '\n';
    question += row[input].text();
  }
  messages.push_back(message("user", std::move(question)));
  messages.push_back(message("assistant", std::move(row[output])));
  return messages;
}

Result<Conversation> chat(RowFormat format, Json messages, Json& row, std::string_view list) {
  RETURN_IF_ERROR(normalise_messages(messages, list));
  Conversation out;
  out.format = format;
  out.variables = std::make_unique<Json>(Json{{"messages", std::move(messages)}});
  RETURN_IF_ERROR(take_extras(row, *out.variables));
  return out;
}

Result<Conversation> prompt_completion(Json& row) {
  constexpr auto format = RowFormat::prompt_completion;
  if (has_list(row, "prompt") && has_list(row, "completion")) {
    Json messages = std::move(row["prompt"]);
    const int64_t context = static_cast<int64_t>(messages.size());
    for (Json& entry : row["completion"]) messages.push_back(std::move(entry));
    ASSIGN_OR_RETURN(Conversation out, chat(format, std::move(messages), row, "prompt + completion"));
    out.first_answer_message = context;
    return out;
  }
  const char* completion = first_string_key(row, kCompletionKeys);
  if (!has_string(row, "prompt") || !completion) {
    return bad_file("prompt and completion are neither two texts nor two lists of messages", "prompt");
  }
  Conversation out;
  out.format = format;
  out.prompt = row["prompt"].get<std::string>();
  out.completion = row[completion].get<std::string>();
  return out;
}

Error not_trainable(RowFormat format) {
  return unsupported(
      "rows of " + std::string(row_format_name(format)) + " cannot be trained on yet", {},
      "Tenon trains on answers, not on preferences. To train on the good answers alone, write them "
      "as messages.");
}

bool has_turns(const Json& row) {
  return has_list(row, "conversations") || has_list(row, "messages") ||
         (row.contains("prompt") && row.contains("completion"));
}

}  // namespace

Conversation::Conversation() = default;
Conversation::Conversation(Conversation&&) noexcept = default;
Conversation& Conversation::operator=(Conversation&&) noexcept = default;
Conversation::~Conversation() = default;

std::string_view row_format_name(RowFormat format) {
  switch (format) {
    case RowFormat::messages:
      return "messages";
    case RowFormat::sharegpt:
      return "conversations (from, value)";
    case RowFormat::instruction:
      return "instruction, input, output";
    case RowFormat::prompt_completion:
      return "prompt, completion";
    case RowFormat::text:
      return "text";
    case RowFormat::preference_pair:
      return "chosen and rejected answers";
    case RowFormat::preference_label:
      return "answers with a label true or false";
  }
  CHECK(false, "unknown row format");
}

Result<RowFormat> detect_row_format(const Json& row) {
  if (!row.is_object()) return bad_file("the row is not a JSON object");
  if (row.contains("chosen") && row.contains("rejected")) return RowFormat::preference_pair;
  const auto label = row.find("label");
  if (label != row.end() && label->is_boolean() && has_turns(row)) return RowFormat::preference_label;
  if (has_list(row, "messages")) return RowFormat::messages;
  if (has_list(row, "conversations")) {
    const Json& turns = row.at("conversations");
    const bool is_roles = !turns.empty() && turns[0].is_object() && turns[0].contains("role");
    return is_roles ? RowFormat::messages : RowFormat::sharegpt;
  }
  if (has_string(row, "instruction") && first_string_key(row, kOutputKeys)) return RowFormat::instruction;
  if (row.contains("prompt") && (has_list(row, "completion") || first_string_key(row, kCompletionKeys))) {
    return RowFormat::prompt_completion;
  }
  if (has_string(row, "text")) return RowFormat::text;
  return bad_file(
      "the row has no known format; its keys are: " + key_names(row), {},
      "Known: messages; conversations; instruction, input, output; prompt, completion; text. Other "
      "names are given with --columns, as in --columns prompt=question,completion=answer.");
}

std::string key_names(const Json& row) {
  std::string keys;
  for (const auto& [key, value] : row.items()) keys += (keys.empty() ? "" : ", ") + key;
  return keys.empty() ? "none" : keys;
}

Result<Conversation> parse_conversation(Json row, RowFormat format) {
  if (!row.is_object()) return bad_file("the row is not a JSON object");
  switch (format) {
    case RowFormat::messages: {
      const char* list = has_list(row, "messages") ? "messages" : "conversations";
      if (!has_list(row, list)) return bad_file("there is no list of messages", "messages");
      Json messages = std::move(row[list]);
      return chat(format, std::move(messages), row, list);
    }
    case RowFormat::sharegpt: {
      if (!has_list(row, "conversations")) return bad_file("there is no list of turns", "conversations");
      ASSIGN_OR_RETURN(Json messages, sharegpt_messages(row));
      return chat(format, std::move(messages), row, "conversations");
    }
    case RowFormat::instruction: {
      ASSIGN_OR_RETURN(Json messages, instruction_messages(row));
      return chat(format, std::move(messages), row, "messages");
    }
    case RowFormat::prompt_completion:
      return prompt_completion(row);
    case RowFormat::text: {
      if (!has_string(row, "text")) return bad_file("text is missing or not a string", "text");
      Conversation out;
      out.format = format;
      out.completion = row["text"].get<std::string>();
      return out;
    }
    case RowFormat::preference_pair:
    case RowFormat::preference_label:
      return not_trainable(format);
  }
  CHECK(false, "unknown row format");
}

bool is_trainable_answer(const Json& message) {
  if (!message.is_object() || !has_string(message, "role") || message.at("role") != "assistant") return false;
  const auto weight = message.find("weight");
  return weight == message.end() || !weight->is_number() || weight->get<double>() != 0.0;
}

}  // namespace tenon
