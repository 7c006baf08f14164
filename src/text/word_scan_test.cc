#include "text/word_scan.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "text/pattern.h"

namespace tenon {
namespace {

struct Piece {
  size_t begin, end;
  bool is_match;
  bool operator==(const Piece&) const = default;
};

std::vector<Piece> split(const Pattern& pattern, std::string_view text) {
  std::vector<Piece> pieces;
  pattern.split(text, [&](TextRange range, bool is_match) {
    if (range.begin < range.end) pieces.push_back({range.begin, range.end, is_match});
  });
  return pieces;
}

std::string random_text(std::mt19937& rng) {
  static const std::vector<std::string> kParts = {
      " ",      " ",          "  ",     "\n",       "\r\n",   "\t",
      "a",      "Bc",         "dEF",    "S",        "s",      "'",
      "'s",     "'LL",        "'re",    "'\u017f",  "\u017f", "1",
      "23",     "4567",       "\u0663", "\u00bd",   "\u2160", ".",
      "!?",     "/",          "//",     "$",        "+",      "_",
      "-",      "\u00e9",     "\u00c9", "\u01c5",   "\u02b0", "\u4e2d\u6587",
      "\u304b", "\u30ab",     "\u0301", "\u0308",   "\u0903", "\u20dd",
      "\u00a0", "\u2009",     "\u3000", "\u2028",   "\u0085", "\u200b",
      "\u200d", "\U0001f680", "\u00ad", "\u0000",   "\x01",   "\ue000",
      "\u0378", "\U00010400", "\xff",   "\xe4\xb8", "\u180e", "\u05d0",
      "\u0915"};
  std::uniform_int_distribution<size_t> part(0, kParts.size() - 1);
  std::uniform_int_distribution<int> length(1, 24);
  std::string text;
  for (int i = length(rng); i > 0; --i) text += kParts[part(rng)];
  return text;
}

// Each hand-written scanner against PCRE2 with the expression it stands for.
TEST(WordScan, EqualsItsExpression) {
  std::mt19937 rng(11);
  const auto known = known_expressions();
  ASSERT_GE(known.size(), 10u);
  for (const KnownExpression& entry : known) {
    auto fast = Pattern::regex(std::string(entry.expression));
    auto plain = Pattern::regex_by_pcre2(std::string(entry.expression));
    ASSERT_TRUE(fast.ok() && plain.ok()) << entry.expression;
    for (int i = 0; i < 3000; ++i) {
      const std::string text = random_text(rng);
      ASSERT_TRUE(split(*fast, text) == split(*plain, text)) << entry.expression << "\n"
                                                             << testing::PrintToString(text);
    }
  }
}

TEST(Pattern, MeansWhatOnigurumaMeans) {
  const auto pieces = [](const char* expression, std::string_view text) {
    auto pattern = Pattern::regex(expression);
    EXPECT_TRUE(pattern.ok()) << expression;
    std::string out;
    pattern->split(text, [&](TextRange range, bool is_match) {
      out += is_match ? '[' : '(';
      out += text.substr(range.begin, range.end - range.begin);
      out += is_match ? ']' : ')';
    });
    return out;
  };
  EXPECT_EQ(pieces("\\h+", "xAF09g"), "(x)[AF09](g)");
  EXPECT_EQ(pieces("a$", "a\na"), "[a](\n)[a]");
  EXPECT_EQ(pieces("(?=B)", "aBcB"), "(a)[](Bc)[](B)");
  EXPECT_EQ(pieces("[^\\S\\n]", "a \n"), "(a)[ ](\n)");
  EXPECT_EQ(pieces("\\w+", "\u00bdx_\u0301"), "(\u00bd)[x_\u0301]");
}

TEST(Pattern, RefusesWhatHasNoCounterpart) {
  for (const char* expression : {"[a-z&&[^b]]", "[a[bc]]", "(", "[^\\W_]"}) {
    const auto pattern = Pattern::regex(expression);
    ASSERT_FALSE(pattern.ok()) << expression;
    EXPECT_EQ(pattern.error().code, ErrorCode::unsupported);
    EXPECT_EQ(pattern.error().subject, expression);
  }
}

}  // namespace
}  // namespace tenon
