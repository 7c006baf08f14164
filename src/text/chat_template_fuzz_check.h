// One round of fuzzing for text/chat_template.h: what must hold for any template.
#pragma once

#include <string_view>

namespace tenon {

// `bytes` is a template and, after a zero byte, a user's message. Parses, renders twice with small budgets
// and CHECKs that the outcome is the same, is UTF-8 and has its spans inside the text.
void fuzz_chat_template(std::string_view bytes);

}  // namespace tenon
