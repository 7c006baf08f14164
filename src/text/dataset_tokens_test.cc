#include "text/dataset_tokens.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tenon {
namespace {

using Ints = std::vector<int32_t>;
constexpr int32_t kNo = kUntrained;

Tokenizer load(const std::string& name) {
  auto tokenizer = Tokenizer::from_file(std::filesystem::path(TENON_SOURCE_DIR) / "tests/text" / name);
  if (!tokenizer.ok()) {
    ADD_FAILURE() << tokenizer.error().text();
    std::abort();
  }
  return std::move(*tokenizer);
}

// Byte-level BPE over ASCII; <s> is 1 and put first, </s> is 2 and also the pad token.
const Tokenizer& bytes() {
  static const Tokenizer tokenizer = load("tiny_bytes");
  return tokenizer;
}

// SentencePiece-like, with a space put before the text and words that hold the space before them.
const Tokenizer& sentencepiece() {
  static const Tokenizer tokenizer = load("tiny_sentencepiece");
  return tokenizer;
}

TokenSettings limit(const Tokenizer& tokenizer, int32_t max_tokens = 1000,
                    TooLong too_long = TooLong::error) {
  return {&tokenizer, max_tokens, too_long};
}

RenderedExample example(std::string text, std::vector<std::string> trained, MaskSource mask) {
  RenderedExample out;
  out.mask = mask;
  size_t at = 0;
  for (const std::string& part : trained) {
    at = text.find(part, at);
    EXPECT_NE(at, std::string::npos);
    out.trained.push_back({static_cast<int64_t>(at), static_cast<int64_t>(at + part.size())});
    at += part.size();
  }
  out.text = std::move(text);
  return out;
}

TokenizedExample tokens(const RenderedExample& rendered, const TokenSettings& settings) {
  auto row = tokenize_example(rendered, settings);
  EXPECT_TRUE(row.ok());
  return row.ok() ? row->example : TokenizedExample{};
}

// Ids from the Hugging Face tokenizers library (0.23) over the same file.
TEST(Tokens, ChatTextGetsNoTokenThatTheTemplateDidNotWrite) {
  const auto row =
      tokens(example("<|im_start|>user\n\nok a<|im_end|>\n", {"ok a<|im_end|>\n"}, MaskSource::prefixes),
             limit(bytes()));
  EXPECT_EQ(row.ids, (Ints{3, 91, 89, 75, 88, 101, 103, 102, 4, 6}));
  // The end-of-turn token is trained on, the newline after it is not.
  EXPECT_EQ(row.labels, (Ints{kNo, kNo, kNo, kNo, kNo, kNo, 103, 102, 4, kNo}));
}

// What a report marks is what is trained on: not the newline after the end-of-turn token, not the first
// token.
TEST(Tokens, TrainedBytesAreThoseOfTheTrainedTokens) {
  const auto chat = tokenize_example(
      example("<|im_start|>user\n\nok a<|im_end|>\n", {"ok a<|im_end|>\n"}, MaskSource::prefixes),
      limit(bytes()));
  ASSERT_TRUE(chat.ok());
  EXPECT_EQ(chat->trained, (std::vector<TextSpan>{{18, 32}}));
  const auto text = tokenize_example(example("Hi a", {"Hi a"}, MaskSource::whole_text), limit(bytes()));
  EXPECT_EQ(text->trained, (std::vector<TextSpan>{{1, 4}}));
}

TEST(Tokens, WhitespaceInsideAnAnswerStaysTrained) {
  const auto row = tokens(
      example("q\nok<|im_end|>\n\na<|im_end|>\n", {"ok<|im_end|>\n\na<|im_end|>\n"}, MaskSource::prefixes),
      limit(bytes()));
  EXPECT_EQ(row.ids, (Ints{87, 6, 103, 4, 101, 71, 4, 6}));
  EXPECT_EQ(row.labels, (Ints{kNo, kNo, 103, 4, 101, 71, 4, kNo}));
  // An answer without any special token keeps its newline: it is all that says where the answer ends.
  EXPECT_EQ(tokens(example("q\nok\n", {"ok\n"}, MaskSource::prefixes), limit(bytes())).labels,
            (Ints{kNo, kNo, 103, 6}));
}

TEST(Tokens, NothingAfterTheEndOfAGenerationIsTrained) {
  const auto row = tokens(example("q\nok</s><|im_start|>a", {"ok</s><|im_start|>a"}, MaskSource::prefixes),
                          limit(bytes()));
  EXPECT_EQ(row.ids, (Ints{87, 6, 103, 2, 3, 71}));
  EXPECT_EQ(row.labels, (Ints{kNo, kNo, 103, 2, kNo, kNo}));
}

// T28: the pad token is the end token; each text keeps its one end token, trained on.
TEST(Tokens, EndTokenIsTrainedThoughItIsThePadToken) {
  ASSERT_EQ(bytes().special().pad, bytes().special().eos.at(0));
  int ends = 0;
  for (const char* text : {"Short sentence</s>", "Now that's a longer sentence</s>", "Left open"}) {
    const auto row = tokens(example(text, {text}, MaskSource::plain), limit(bytes()));
    EXPECT_EQ(row.ids.back(), 2) << text;
    EXPECT_EQ(row.labels.back(), 2) << text;
    for (const int32_t label : row.labels) ends += label == 2;
  }
  EXPECT_EQ(ends, 3);
}

// T29: one begin token, whether the template, the text or the tokenizer brings it.
TEST(Tokens, ExactlyOneBeginToken) {
  EXPECT_EQ(tokens(example("<s>Hi a</s>", {"Hi a</s>"}, MaskSource::prefixes), limit(bytes())).ids,
            (Ints{1, 46, 79, 102, 2}));
  EXPECT_EQ(tokens(example("Hi a</s>", {"Hi a</s>"}, MaskSource::plain), limit(bytes())).ids,
            (Ints{1, 46, 79, 102, 2}));
  EXPECT_EQ(tokens(example("<s>Hi a</s>", {"Hi a</s>"}, MaskSource::plain), limit(bytes())).ids,
            (Ints{1, 46, 79, 102, 2}));
}

TEST(Tokens, PlainPromptIsContext) {
  const auto row = tokens(example("Hi a", {" a"}, MaskSource::plain), limit(bytes()));
  EXPECT_EQ(row.ids, (Ints{1, 46, 79, 102, 2}));
  EXPECT_EQ(row.labels, (Ints{kNo, kNo, kNo, 102, 2}));
}

// T30: the marker "\n### Assistant:" has other tokens in this text than alone. Ids from the Hugging Face
// tokenizers library. The space before the answer belongs to the answer's first token.
TEST(Tokens, PlacesComeFromTheWholeText) {
  const std::string text = "\n### Assistant: Short ok</s>";
  const Ints ids = {259, 13,  356, 262, 357, 342, 342, 332, 342, 343, 324,
                    337, 343, 285, 354, 331, 338, 341, 343, 259, 355, 2};
  const auto with_space =
      tokens(example(text, {" Short ok</s>"}, MaskSource::prefixes), limit(sentencepiece()));
  EXPECT_EQ(with_space.ids, ids);
  Ints labels(14, kNo);
  labels.insert(labels.end(), ids.begin() + 14, ids.end());
  EXPECT_EQ(with_space.labels, labels);
  // A header that takes the space away: the token that reaches over the edge is context.
  const auto without = tokens(example(text, {"Short ok</s>"}, MaskSource::prefixes), limit(sentencepiece()));
  EXPECT_EQ(without.ids, ids);
  labels[14] = kNo;
  EXPECT_EQ(without.labels, labels);
}

// T31: no end token stands at the end of what was cut.
TEST(Tokens, CutAnswersEndWithoutAnEndToken) {
  const RenderedExample rendered = example("Hi a", {"Hi a"}, MaskSource::plain);
  const auto row = tokenize_example(rendered, limit(bytes(), 4, TooLong::cut));
  ASSERT_TRUE(row.ok());
  EXPECT_TRUE(row->cut);
  EXPECT_EQ(row->full_tokens, 5);
  EXPECT_EQ(row->example.ids, (Ints{1, 46, 79, 102}));
  EXPECT_EQ(row->example.labels, (Ints{kNo, 46, 79, 102}));
  EXPECT_FALSE(tokenize_example(rendered, limit(bytes(), 5, TooLong::cut))->cut);
}

TEST(Tokens, TooLongIsAnErrorOrSkipped) {
  const RenderedExample rendered = example("Hi a", {"Hi a"}, MaskSource::plain);
  const auto refused = tokenize_example(rendered, limit(bytes(), 4, TooLong::error));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "the row has 5 tokens, more than the limit of 4");
  const auto skipped = tokenize_example(rendered, limit(bytes(), 4, TooLong::skip));
  EXPECT_TRUE(skipped->skipped);
  EXPECT_TRUE(skipped->example.ids.empty());
}

// T07: nothing of the answer is left inside the limit.
TEST(Tokens, LongPromptLeavesNothingToTrainOn) {
  const std::string prompt(600, 'q');
  const auto row =
      tokenize_example(example(prompt + "a", {"a"}, MaskSource::prefixes), limit(bytes(), 512, TooLong::cut));
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->example.trained_tokens(), 0);
}

TEST(Tokens, WholeTextIsTrainedAsItStands) {
  const auto row =
      tokens(example("ok<|im_end|>\n", {"ok<|im_end|>\n"}, MaskSource::whole_text), limit(bytes()));
  EXPECT_EQ(row.labels, (Ints{103, 4, 6}));
}

}  // namespace
}  // namespace tenon
