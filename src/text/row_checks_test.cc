#include "text/row_checks.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace tenon {
namespace {

Conversation chat(const std::string& messages) {
  auto row = Json::parse(R"({"messages":)" + messages + "}");
  auto conversation = parse_conversation(std::move(row), RowFormat::messages);
  EXPECT_TRUE(conversation.ok());
  return std::move(*conversation);
}

// "u" a user's message, "a" an assistant's, "s" the system's, "t" a tool's.
bool in_order(std::string_view roles) {
  std::string messages;
  for (const char role : roles) {
    const char* name = role == 'u' ? "user" : role == 'a' ? "assistant" : role == 's' ? "system" : "tool";
    messages += (messages.empty() ? "" : ",") + std::string(R"({"role":")") + name + R"(","content":"x"})";
  }
  return roles_in_order(chat("[" + messages + "]"));
}

TEST(RowChecks, RolesOfAChatAndOthers) {
  for (const char* good : {"ua", "sua", "suaua", "uatta", "uata", "ssua"})
    EXPECT_TRUE(in_order(good)) << good;
  for (const char* bad : {"u", "a", "uu", "uua", "uaa", "usa", "uta", "aua", "uau", "sau"})
    EXPECT_FALSE(in_order(bad)) << bad;
}

TEST(RowChecks, AnswersWithoutWords) {
  EXPECT_TRUE(check_row(chat(R"([{"role":"user","content":"q"},{"role":"assistant","content":" \n"}])"))
                  .empty_answer);
  EXPECT_FALSE(
      check_row(chat(R"([{"role":"user","content":""},{"role":"assistant","content":"a"}])")).empty_answer);
  EXPECT_FALSE(
      check_row(chat(R"([{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"name":"f"}]}])"))
          .empty_answer);
  Conversation plain;
  plain.prompt = "q";
  EXPECT_TRUE(check_row(plain).empty_answer);
}

TEST(RowChecks, TextThatWasDecodedWrongly) {
  EXPECT_TRUE(check_text("caf\u00c3\u00a9").mojibake);        // é
  EXPECT_TRUE(check_text("it\u00e2\u20ac\u2122s").mojibake);  // a curly apostrophe
  EXPECT_TRUE(check_text("5\u00c2\u00a0kg").mojibake);        // a no-break space
  EXPECT_FALSE(check_text("café, Ünïcode, São, it’s, 中文").encoding());
  EXPECT_TRUE(check_text("a\r\nb").carriage_return);
  EXPECT_TRUE(check_text("\ufeffa").byte_order_mark);
  EXPECT_TRUE(check_text("a\ufffd").replacement);
  EXPECT_TRUE(check_text(std::string("a\0b", 3)).control);
  EXPECT_FALSE(check_text("a\tb\n").encoding());
}

}  // namespace
}  // namespace tenon
