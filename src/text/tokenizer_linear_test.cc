// Hostile texts take time in proportion to their length, for every kind of tokenizer.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <limits>
#include <string>

#include "text/tokenizer.h"

namespace tenon {
namespace {

constexpr size_t kSmallBytes = 1 << 16;
constexpr size_t kLargeBytes = 4 * kSmallBytes;
// Four times the text in eight times the time is still linear on a busy machine; quadratic time is sixteen
// times.
constexpr double kMostRatio = 8;
constexpr double kNoiseSeconds = 2e-3;

struct HostileText {
  const char* what;
  const char* unit;
};
// One word without a boundary, boundaries alone, marks that all belong to one character, and beginnings of
// special tokens that never end.
constexpr HostileText kTexts[] = {
    {"one letter", "a"},
    {"letters that merge", "the"},
    {"spaces", " "},
    {"newlines", "\n"},
    {"digits", "7"},
    {"combining marks", "\u0301"},
    {"CJK", "\u4e2d"},
    {"Hangul jamo", "\u1112\u1161"},
    {"punctuation", "'"},
    {"emoji joined", "\U0001f469\u200d"},
    {"bytes that are no text", "\xff"},
    {"special tokens", "<|im_end|>"},
    {"beginnings of special tokens", "<|im_"},
    {"spaces before special tokens", "  <SW> <MASK>"},
};

std::string repeated(const std::string& unit, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

double seconds_of(const Tokenizer& tokenizer, const std::string& text) {
  const auto now = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  double best = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < 2; ++pass) {
    const double begin = now();
    EXPECT_FALSE(tokenizer.encode_spans(text).empty() && tokenizer.encode(text + "a").empty());
    best = std::min(best, now() - begin);
  }
  return best;
}

class LinearTime : public testing::TestWithParam<const char*> {};

TEST_P(LinearTime, OfHostileTexts) {
  const auto tokenizer =
      Tokenizer::from_file(std::string(TENON_SOURCE_DIR "/tests/text/tokenizers/") + GetParam());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().text();
  for (const HostileText& hostile : kTexts) {
    const double small = seconds_of(*tokenizer, repeated(hostile.unit, kSmallBytes));
    const double large = seconds_of(*tokenizer, repeated(hostile.unit, kLargeBytes));
    EXPECT_LT(large, kMostRatio * (small + kNoiseSeconds)) << hostile.what;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, LinearTime,
                         testing::Values("byte_level.json", "metaspace.json", "unigram.json",
                                         "wordpiece.json", "bpe.model", "unigram.model"));

}  // namespace
}  // namespace tenon
