#include "text/conversation.h"

#include <gtest/gtest.h>

#include <string>

#include "base/json.h"

namespace tenon {
namespace {

Result<Conversation> read(const std::string& text) {
  Json row = Json::parse(text);
  ASSIGN_OR_RETURN(const RowFormat format, detect_row_format(row));
  return parse_conversation(std::move(row), format);
}

// The variables for the template, as JSON text; the error's text where there is one.
std::string variables(const std::string& text) {
  const auto conversation = read(text);
  if (!conversation.ok()) return conversation.error().text();
  return conversation->is_chat() ? conversation->variables->dump() : "plain";
}

RowFormat format_of(const std::string& text) {
  return *detect_row_format(Json::parse(text));
}

TEST(RowFormat, ToldByKeys) {
  EXPECT_EQ(format_of(R"({"messages":[{"role":"user","content":"q"}]})"), RowFormat::messages);
  EXPECT_EQ(format_of(R"({"conversations":[{"role":"user","content":"q"}]})"), RowFormat::messages);
  EXPECT_EQ(format_of(R"({"conversations":[{"from":"human","value":"q"}]})"), RowFormat::sharegpt);
  EXPECT_EQ(format_of(R"({"instruction":"q","input":"","output":"a"})"), RowFormat::instruction);
  EXPECT_EQ(format_of(R"({"prompt":"q","completion":"a"})"), RowFormat::prompt_completion);
  EXPECT_EQ(format_of(R"({"text":"t","label":3})"), RowFormat::text);
  EXPECT_EQ(format_of(R"({"prompt":"q","chosen":"a","rejected":"b"})"), RowFormat::preference_pair);
  EXPECT_EQ(format_of(R"({"messages":[],"label":true})"), RowFormat::preference_label);
  EXPECT_EQ(format_of(R"({"prompt":"q","completion":"a","label":false})"), RowFormat::preference_label);
}

TEST(RowFormat, UnknownKeysAreNamed) {
  const auto format = detect_row_format(Json::parse(R"({"question":"q","answer":"a"})"));
  ASSERT_FALSE(format.ok());
  EXPECT_EQ(format.error().message, "the row has no known format; its keys are: question, answer");
  EXPECT_FALSE(detect_row_format(Json::parse("[1]")).ok());
  EXPECT_FALSE(detect_row_format(Json::parse("{}")).ok());
}

TEST(Conversation, PreferenceRowsAreRefusedWithTheReason) {
  for (const char* row :
       {R"({"prompt":"q","chosen":"a","rejected":"b"})", R"({"messages":[],"label":true})"}) {
    const auto conversation = read(row);
    ASSERT_FALSE(conversation.ok());
    EXPECT_EQ(conversation.error().code, ErrorCode::unsupported);
    EXPECT_NE(conversation.error().message.find("cannot be trained on yet"), std::string::npos);
  }
}

TEST(Preference, EveryFormOfAPairGivesTwoConversations) {
  const auto pair = [](const std::string& row) {
    auto preference = parse_preference(Json::parse(row), RowFormat::preference_pair);
    EXPECT_TRUE(preference.ok()) << (preference.ok() ? "" : preference.error().text());
    return std::move(*preference);
  };
  const std::string turns = R"([{"role":"user","content":"q"},)";
  const std::string good = R"({"role":"assistant","content":"a"})",
                    bad = R"({"role":"assistant","content":"b"})";
  for (const std::string& row :
       {R"({"messages":[{"role":"user","content":"q"}],"chosen":)" + good + R"(,"rejected":)" + bad + "}",
        R"({"prompt":[{"role":"user","content":"q"}],"chosen":[)" + good + R"(],"rejected":[)" + bad + "]}",
        R"({"prompt":"q","chosen":)" + turns + good + R"(],"rejected":)" + turns + bad + "]}",
        R"({"prompt":"q","messages":)" + turns + good + R"(],"chosen":)" + turns + good + R"(],"rejected":)" +
            turns + bad + "]}",
        std::string(R"({"conversations":[{"from":"human","value":"q"}],"chosen":{"from":"gpt","value":"a"},)"
                    R"("rejected":{"from":"gpt","value":"b"}})"),
        std::string(R"({"instruction":"q","input":"","chosen":"a","rejected":"b"})")}) {
    const Preference preference = pair(row);
    EXPECT_TRUE(preference.is_pair);
    EXPECT_EQ(preference.chosen.variables->at("messages").dump(), turns + good + "]") << row;
    EXPECT_EQ(preference.rejected.variables->at("messages").dump(), turns + bad + "]") << row;
  }
  const Preference plain = pair(R"({"prompt":"q","chosen":"a","rejected":"b"})");
  EXPECT_EQ(plain.chosen.prompt, "q");
  EXPECT_EQ(plain.rejected.completion, "b");
  const auto wrong = parse_preference(Json::parse(R"({"prompt":"q","chosen":1,"rejected":"b"})"),
                                      RowFormat::preference_pair);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().subject, "chosen");
}

TEST(Preference, LabelsStandBesideOneAnswer) {
  const auto row = parse_preference(Json::parse(R"({"prompt":"q","completion":"a","label":false})"),
                                    RowFormat::preference_label);
  ASSERT_TRUE(row.ok());
  EXPECT_FALSE(row->is_pair);
  EXPECT_FALSE(row->label);
  EXPECT_EQ(row->chosen.completion, "a");
}

TEST(Conversation, MessagesKeepFieldsAndOrder) {
  EXPECT_EQ(variables(R"({"id":7,"messages":[{"role":"user","content":"q"},
                {"role":"assistant","reasoning_content":"r","content":"a","weight":0}],"tools":[]})"),
            R"({"messages":[{"role":"user","content":"q"},)"
            R"({"role":"assistant","reasoning_content":"r","content":"a","weight":0}]})");
}

TEST(Conversation, PartsOfTextBecomeText) {
  EXPECT_EQ(
      variables(
          R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]})"),
      R"({"messages":[{"role":"user","content":"a\nb"}]})");
  EXPECT_EQ(read(R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":"x"}]}]})")
                .error()
                .subject,
            "messages[0].content[0]");
}

TEST(Conversation, ReasoningAndCallPartsGoToTheirFields) {
  EXPECT_EQ(variables(R"({"messages":[{"role":"assistant","content":[{"type":"reasoning","value":"r"},
                    {"type":"tool_call","value":"{\"name\":\"f\",\"arguments\":{\"x\":1}}"}]},
                    {"role":"assistant","content":[{"type":"reasoning","value":"s"},{"type":"text","value":"a"}]}]})"),
            R"({"messages":[{"role":"assistant","content":"","tool_calls":[{"type":"function","function":)"
            R"({"name":"f","arguments":{"x":1}}}],"reasoning_content":"r"},)"
            R"({"role":"assistant","content":"a","reasoning_content":"s"}]})");
}

TEST(Conversation, CallArgumentsBecomeObjects) {
  EXPECT_EQ(variables(R"({"messages":[{"role":"assistant","tool_calls":[{"type":"function","function":
                {"name":"f","arguments":"{\"x\":1}"}}]}],"tools":"[{\"name\":\"f\"}]"})"),
            R"({"messages":[{"role":"assistant","tool_calls":[{"type":"function","function":)"
            R"({"name":"f","arguments":{"x":1}}}],"content":""}],"tools":[{"name":"f"}]})");
}

TEST(Conversation, ShareGptTurns) {
  EXPECT_EQ(
      variables(R"({"system":"s","tools":"","conversations":[{"from":"human","value":"q"},
                {"from":"function_call","value":"{\"name\":\"f\",\"arguments\":{\"x\":1}}"},
                {"from":"observation","value":"o"},{"from":"gpt","value":"a"}]})"),
      R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"},)"
      R"({"role":"assistant","content":"","tool_calls":[{"type":"function","function":)"
      R"({"name":"f","arguments":{"x":1}}}]},{"role":"tool","content":"o"},{"role":"assistant","content":"a"}]})");
  EXPECT_EQ(read(R"({"conversations":[{"from":"narrator","value":"q"}]})").error().message,
            "unknown speaker 'narrator'");
}

TEST(Conversation, InstructionWithInputAndHistory) {
  EXPECT_EQ(
      variables(R"({"instruction":"do","input":"x","output":"y","system":"s","history":[["q","a"]]})"),
      R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"},)"
      R"({"role":"assistant","content":"a"},{"role":"user","content":"do\nx"},{"role":"assistant","content":"y"}]})");
  EXPECT_EQ(variables(R"({"instruction":"do","input":"","output":"y"})"),
            R"({"messages":[{"role":"user","content":"do"},{"role":"assistant","content":"y"}]})");
}

TEST(Conversation, PromptAndCompletion) {
  const auto plain = read(R"({"prompt":"q ","completion":"a"})");
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(plain->is_chat());
  EXPECT_EQ(plain->prompt, "q ");
  EXPECT_EQ(plain->completion, "a");
  const auto chat = read(R"({"prompt":[{"role":"user","content":"q"},{"role":"assistant","content":"b"}],
                             "completion":[{"role":"assistant","content":"a"}]})");
  ASSERT_TRUE(chat.ok());
  EXPECT_EQ(chat->first_answer_message, 2);
  EXPECT_EQ(chat->variables->at("messages").size(), 3u);
}

TEST(Conversation, WrongShapesNameThePlace) {
  const auto subject = [](const std::string& row) { return read(row).error().subject; };
  EXPECT_EQ(subject(R"({"messages":[]})"), "messages");
  EXPECT_EQ(subject(R"({"messages":[{"role":"user","content":"q"},{"content":"a"}]})"), "messages[1]");
  EXPECT_EQ(subject(R"({"messages":[{"role":"user"}]})"), "messages[0]");
  EXPECT_EQ(subject(R"({"messages":[{"role":"user","content":5}]})"), "messages[0]");
  EXPECT_EQ(subject(R"({"messages":["hello"]})"), "messages[0]");
  EXPECT_EQ(subject(R"({"conversations":[]})"), "conversations");
  EXPECT_EQ(subject(R"({"instruction":"a","output":"b","history":[["q"]]})"), "history[0]");
  EXPECT_EQ(subject(R"({"messages":[{"role":"user","content":"q"}],"tools":"{"})"), "tools");
  EXPECT_EQ(subject(R"({"prompt":1,"completion":"a"})"), "prompt");
}

TEST(Conversation, WeightZeroIsNotLearned) {
  EXPECT_FALSE(is_trainable_answer(Json::parse(R"({"role":"assistant","content":"a","weight":0})")));
  EXPECT_TRUE(is_trainable_answer(Json::parse(R"({"role":"assistant","content":"a","weight":1})")));
  EXPECT_TRUE(is_trainable_answer(Json::parse(R"({"role":"assistant","content":"a"})")));
  EXPECT_FALSE(is_trainable_answer(Json::parse(R"({"role":"user","content":"a"})")));
}

}  // namespace
}  // namespace tenon
