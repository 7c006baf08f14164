// What is suspicious in a row before it is rendered: answers without words, turns in an order that no chat
// has, and signs that text was decoded wrongly. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/conversation.h"

namespace tenon {

struct RowTrouble {
  bool empty_answer = false;  // an assistant message without words, reasoning or calls; an empty completion
  bool roles = false;         // see roles_in_order()
  bool carriage_return = false;  // \r: lines that end as on Windows
  bool byte_order_mark = false;  // U+FEFF
  bool mojibake = false;         // UTF-8 that was read as Latin-1 or Windows-1252 ("Ã©", "â€™", "Â ")
  bool replacement = false;      // U+FFFD: bytes that were lost earlier
  bool control = false;          // control characters but tab and line ends

  bool encoding() const { return carriage_return || byte_order_mark || mojibake || replacement || control; }
};

RowTrouble check_row(const Conversation& conversation);

// System messages first, then user and assistant in turn; tool messages follow an assistant message or
// another tool message, and an assistant message follows those; the last message is the assistant's.
// `conversation` must be chat.
bool roles_in_order(const Conversation& conversation);

// All words of the row but those of system messages, a line a message.
std::string words_of(const Conversation& conversation);

// Of encoding alone.
RowTrouble check_text(std::string_view text);

}  // namespace tenon
