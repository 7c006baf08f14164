// One row of a data set as one value: messages for a chat template, or plain text. Knows the published row
// formats and tells them apart by their keys. Pure; never reads files, never renders, never tokenises.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace tenon {

// How a row is written.
enum class RowFormat {
  messages,           // messages: [{role, content, ...}]; also under the key "conversations"
  sharegpt,           // conversations: [{from, value}]; system, tools
  instruction,        // instruction, input, output; system, history: [[question, answer]]
  prompt_completion,  // prompt, completion: two strings (plain text) or two lists of messages (chat)
  text,               // text
  preference_pair,    // chosen, rejected: to be read and shown, not trained on
  preference_label,   // messages or prompt and completion, with a label true or false: likewise
};

std::string_view row_format_name(RowFormat format);

struct Conversation {
  Conversation();
  Conversation(Conversation&&) noexcept;
  Conversation& operator=(Conversation&&) noexcept;
  ~Conversation();

  RowFormat format = RowFormat::text;

  // Chat: the object a chat template is given: "messages", and where the row has them "tools", "documents"
  // and what is in "chat_template_kwargs". Null for plain text.
  std::unique_ptr<Json> variables;
  int64_t first_answer_message = 0;  // assistant messages before this one are context, never trained on

  // Plain text: `prompt` is context and `completion` follows it directly. A text row is all completion.
  std::string prompt;
  std::string completion;
  bool continues = false;  // the text goes on in the next row, so that no end-of-sequence token follows

  bool is_chat() const { return variables != nullptr; }
};

// Tells the format by the keys. Error: bad_file, naming the keys found.
Result<RowFormat> detect_row_format(const Json& row);

// Reads a row of that format. What is made alike, so that templates see one shape:
//  - content that is a list of parts becomes the text of its text parts, joined by newlines; reasoning parts
//    go to reasoning_content, tool_call parts to tool_calls; null content is kept, content that is missing
//    beside tool calls is empty text, as most templates want it;
//  - tool calls whose arguments are a string of a JSON object get the object;
//  - sharegpt roles become system, user, assistant and tool, a function_call turn an assistant message with
//    tool_calls; "tools" given as a string of JSON is read;
//  - an instruction row becomes a user message (instruction, newline, input where there is input) and an
//    assistant message.
// All else in a message (reasoning_content, name, weight, ...) is kept as it is. The key order is kept.
// Errors: bad_file (a key is missing or of the wrong type; the subject is the place in the row,
// "messages[2]"), unsupported (preference rows, parts that are not text).
Result<Conversation> parse_conversation(Json row, RowFormat format);

// A row that says which of two answers is better, or whether one is good.
struct Preference {
  Conversation chosen;    // of a labelled row: its answer, good or not
  Conversation rejected;  // of a pair
  bool is_pair = false;
  bool label = true;  // of a labelled row
};

// Reads a preference row. The answers of a pair are texts (after a prompt that is a text), one message each,
// or lists of messages (after a prompt that is such a list or where they hold the whole conversation); turns
// before them may stand under "messages" or "conversations". A labelled row is one of another format with
// "label". Errors: as parse_conversation, the subject beginning with "chosen" or "rejected".
Result<Preference> parse_preference(Json row, RowFormat format);

// The keys of a row, as "a, b"; "none" where it has none.
std::string key_names(const Json& row);

// False for an assistant message with "weight": 0, which marks an answer not to learn.
bool is_trainable_answer(const Json& message);

}  // namespace tenon
