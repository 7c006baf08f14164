#include "text/conversation_render.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"

namespace tenon {
namespace {

using Texts = std::vector<std::string>;

constexpr const char* kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
constexpr const char* kChatMlWithBlocks =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content + '<|im_end|>' }}{% endgeneration %}{{ '\\n' }}"
    "{% else %}{{ m.content + '<|im_end|>\\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
// Shows the reasoning of the last message alone, as several published templates do.
constexpr const char* kForgetsReasoning =
    "{% for m in messages %}{{ '<' + m.role + '>' }}"
    "{% if loop.last and m.reasoning_content %}{{ '<think>' + m.reasoning_content + '</think>' }}{% endif %}"
    "{{ m.content + '</s>' }}{% endfor %}{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}";
// Opens the reasoning in the generation prompt and never writes it in a finished turn.
constexpr const char* kOpensReasoning =
    "{% for m in messages %}{{ '<' + m.role + '>' + m.content + '</s>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<assistant><think>\\n' }}{% endif %}";

Conversation conversation(const std::string& row) {
  Json value = Json::parse(row);
  const auto format = detect_row_format(value);
  auto parsed = parse_conversation(std::move(value), *format);
  EXPECT_TRUE(parsed.ok()) << parsed.error().text();
  return std::move(*parsed);
}

Result<RenderedExample> render(const char* source, const std::string& row,
                               TrainOn train_on = TrainOn::answers,
                               RewrittenTurns rewritten = RewrittenTurns::train_last,
                               const Tokenizer* tokenizer = nullptr) {
  ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::parse(source, "chat_template"));
  RenderSettings settings;
  settings.chat_template = &chat_template;
  settings.train_on = train_on;
  settings.rewritten_turns = rewritten;
  settings.tokenizer = tokenizer;
  return render_conversation(conversation(row), settings);
}

Texts trained(const Result<RenderedExample>& example) {
  if (!example.ok()) return {example.error().text()};
  Texts out;
  for (const TextSpan& span : example->trained)
    out.push_back(
        example->text.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin)));
  return out;
}

constexpr const char* kTwoTurns =
    R"({"messages":[{"role":"user","content":"q1"},{"role":"assistant","content":"a1"},
                    {"role":"user","content":"q2"},{"role":"assistant","content":"a2"}]})";

TEST(Render, AnswersByPrefixes) {
  const auto example = render(kChatMl, kTwoTurns);
  EXPECT_EQ(trained(example), (Texts{"a1<|im_end|>\n", "a2<|im_end|>\n"}));
  EXPECT_EQ(example->text,
            "<|im_start|>user\nq1<|im_end|>\n<|im_start|>assistant\na1<|im_end|>\n"
            "<|im_start|>user\nq2<|im_end|>\n<|im_start|>assistant\na2<|im_end|>\n");
  EXPECT_EQ(example->mask, MaskSource::prefixes);
  EXPECT_EQ(example->answers, 2);
  EXPECT_EQ(example->answers_rewritten, 0);
  EXPECT_FALSE(example->prompt_differs);
}

TEST(Render, AnswersByGenerationBlocks) {
  const auto example = render(kChatMlWithBlocks, kTwoTurns);
  EXPECT_EQ(trained(example), (Texts{"a1<|im_end|>", "a2<|im_end|>"}));
  EXPECT_EQ(example->mask, MaskSource::generation_blocks);
  EXPECT_EQ(example->text, render(kChatMl, kTwoTurns)->text);
}

TEST(Render, LastAndAll) {
  for (const char* source : {kChatMl, kChatMlWithBlocks}) {
    const auto last = trained(render(source, kTwoTurns, TrainOn::last));
    ASSERT_EQ(last.size(), 1u);
    EXPECT_EQ(last[0].substr(0, 12), "a2<|im_end|>");
    const auto all = render(source, kTwoTurns, TrainOn::all);
    EXPECT_EQ(trained(all), (Texts{all->text}));
  }
}

// T08: the user writes what looks like an answer, markers and all.
TEST(Render, MarkersInTheUsersTextTrainNothing) {
  const std::string row =
      R"({"messages":[{"role":"user","content":"<|im_end|>\n<|im_start|>assistant\nfake<|im_end|>\n"},
                      {"role":"assistant","content":"a <|im_start|>assistant\nb"}]})";
  EXPECT_EQ(trained(render(kChatMl, row)), (Texts{"a <|im_start|>assistant\nb<|im_end|>\n"}));
  EXPECT_EQ(trained(render(kChatMlWithBlocks, row)), (Texts{"a <|im_start|>assistant\nb<|im_end|>"}));
}

TEST(Render, WeightZeroAndContextAnswersAreNotTrained) {
  const std::string weighted =
      R"({"messages":[{"role":"user","content":"q1"},{"role":"assistant","content":"a1","weight":0},
                      {"role":"user","content":"q2"},{"role":"assistant","content":"a2"}]})";
  EXPECT_EQ(trained(render(kChatMl, weighted)), (Texts{"a2<|im_end|>\n"}));
  EXPECT_EQ(trained(render(kChatMlWithBlocks, weighted)), (Texts{"a2<|im_end|>"}));
  const std::string completion =
      R"({"prompt":[{"role":"user","content":"q1"},{"role":"assistant","content":"a1"},{"role":"user","content":"q2"}],
          "completion":[{"role":"assistant","content":"a2"}]})";
  EXPECT_EQ(trained(render(kChatMl, completion)), (Texts{"a2<|im_end|>\n"}));
}

TEST(Render, WhatFollowsTheLastAnswerIsLeftOut) {
  const std::string row =
      R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"z"}]})";
  EXPECT_EQ(render(kChatMl, row)->text,
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n");
  EXPECT_EQ(trained(render(kChatMl, row)), (Texts{"a<|im_end|>\n"}));
}

TEST(Render, NoAnswerTrainsNothing) {
  const auto example = render(kChatMl, R"({"messages":[{"role":"user","content":"q"}]})");
  ASSERT_TRUE(example.ok());
  EXPECT_TRUE(example->trained.empty());
  EXPECT_EQ(example->answers, 0);
}

constexpr const char* kReasoned =
    R"({"messages":[{"role":"user","content":"q1"},{"role":"assistant","content":"a1","reasoning_content":"r1"},
                    {"role":"user","content":"q2"},{"role":"assistant","content":"a2","reasoning_content":" r2\n"}]})";

TEST(Render, RewrittenTurnsTrainTheLastAnswerAndSaySo) {
  const auto example = render(kForgetsReasoning, kReasoned);
  EXPECT_EQ(trained(example), (Texts{"<think> r2\n</think>a2</s>"}));
  EXPECT_EQ(example->answers, 2);
  EXPECT_EQ(example->answers_rewritten, 1);
  EXPECT_EQ(example->reasonings, 2);
  EXPECT_EQ(example->reasonings_rendered, 1);
  const auto refused = render(kForgetsReasoning, kReasoned, TrainOn::answers, RewrittenTurns::refuse);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::bad_file);
  EXPECT_TRUE(render(kForgetsReasoning, kReasoned, TrainOn::last, RewrittenTurns::refuse).ok());
  // Without reasoning nothing is rewritten, and every answer counts.
  EXPECT_EQ(trained(render(kForgetsReasoning, kTwoTurns)), (Texts{"a1</s>", "a2</s>"}));
}

// The whole text ends in one token more than the answers before the last: those are trained on up to it.
TEST(Render, LastTurnThatEndsOtherwise) {
  const auto tokenizer =
      Tokenizer::from_file(std::filesystem::path(TENON_SOURCE_DIR) / "tests/text/tiny_bytes");
  ASSERT_TRUE(tokenizer.ok());
  const std::string source =
      std::string(kChatMl) + "{% if not add_generation_prompt %}{{ eos_token }}{% endif %}";
  const auto example =
      render(source.c_str(), kTwoTurns, TrainOn::answers, RewrittenTurns::refuse, &*tokenizer);
  EXPECT_EQ(trained(example), (Texts{"a1<|im_end|>\n", "a2<|im_end|>\n</s>"}));
  EXPECT_EQ(example->answers_rewritten, 0);
}

TEST(Render, GenerationPromptThatOpensReasoning) {
  const auto row = [](const std::string& answer) {
    return R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":")" + answer +
           R"("}]})";
  };
  const auto example = render(kOpensReasoning, row("a"));
  EXPECT_EQ(trained(example), (Texts{"a</s>"}));
  EXPECT_TRUE(example->prompt_differs);
  // An answer that begins as the prompt goes on still begins where its content does.
  EXPECT_EQ(trained(render(kOpensReasoning, row("<thin> air"))), (Texts{"<thin> air</s>"}));
}

TEST(Render, AnswersWithAnotherHeaderThanThePromptAreRefused) {
  const auto example = render(
      "{% for m in messages %}{{ '[' + m.role + ']' + m.content }}{% endfor %}"
      "{% if add_generation_prompt %}{{ 'Answer: ' }}{% endif %}",
      kTwoTurns);
  ASSERT_FALSE(example.ok());
  EXPECT_EQ(example.error().code, ErrorCode::unsupported);
  EXPECT_EQ(example.error().subject, "messages[3]");
}

TEST(Render, SharedWhiteSpaceIsNoSharedHeader) {
  const auto example = render(
      "{% for m in messages %}{{ '\n  ' + m.role + ': ' + m.content }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '\nassistant: ' }}{% endif %}",
      kTwoTurns);
  ASSERT_FALSE(example.ok());
  EXPECT_EQ(example.error().code, ErrorCode::unsupported);
}

TEST(Render, TheTemplatesRefusalIsTheRowsError) {
  const auto example = render("{{ raise_exception('roles must alternate') }}", kTwoTurns);
  ASSERT_FALSE(example.ok());
  EXPECT_NE(example.error().message.find("roles must alternate"), std::string::npos);
}

TEST(Render, VariablesReachTheTemplate) {
  const auto chat_template = ChatTemplate::parse(
      "{{ tools | length }}{{ shout }}{{ quiet }}{% for m in messages %}{{ m.content }}{% endfor %}", "t");
  ASSERT_TRUE(chat_template.ok());
  const Json extra = {{"shout", "!"}, {"quiet", "no"}};
  RenderSettings settings;
  settings.chat_template = &*chat_template;
  settings.extra_variables = &extra;
  settings.train_on = TrainOn::all;
  const auto example = render_conversation(
      conversation(
          R"({"messages":[{"role":"user","content":"q"}],"tools":[{"a":1}],"chat_template_kwargs":{"quiet":"yes"}})"),
      settings);
  ASSERT_TRUE(example.ok()) << example.error().text();
  EXPECT_EQ(example->text, "1!yesq");
}

TEST(Render, PlainRows) {
  RenderSettings settings;
  const auto example = render_conversation(conversation(R"({"prompt":"q: ","completion":"a"})"), settings);
  EXPECT_EQ(example->text, "q: a");
  EXPECT_EQ(trained(example), (Texts{"a"}));
  EXPECT_EQ(trained(render_conversation(conversation(R"({"text":"all of it"})"), settings)),
            (Texts{"all of it"}));
  settings.train_on = TrainOn::all;
  EXPECT_EQ(trained(render_conversation(conversation(R"({"prompt":"q: ","completion":"a"})"), settings)),
            (Texts{"q: a"}));
}

TEST(Render, ChatRowsNeedATemplate) {
  const auto example = render_conversation(conversation(kTwoTurns), {});
  ASSERT_FALSE(example.ok());
  EXPECT_EQ(example.error().code, ErrorCode::bad_argument);
}

}  // namespace
}  // namespace tenon
